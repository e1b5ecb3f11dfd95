#include "allocator/frontend/control.h"

#include <atomic>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/config/control_tables.h"
#include "allocator/config/options.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/frontend/startup_options.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kMaxDecayMs = 24ULL * 3600 * 1000;

// Written when the process starts.
constinit std::atomic<std::uint32_t> g_allowed{0};
// Written from outside.
constinit std::atomic<std::uint64_t> g_argument{0};
constinit std::atomic<std::uint64_t> g_request{0};
// By the thread that obeys; g_taken when it begins.
constinit std::atomic<std::uint64_t> g_taken{0};
constinit std::atomic<std::uint64_t> g_done{0};
constinit std::atomic<std::uint64_t> g_result{0};

// What is no command, or no sensible argument, does nothing.
std::uint64_t Obey(ControlCommand command, std::uint64_t argument) {
  switch (command) {
    case ControlCommand::kPurge:
      return ProductPurge();
    case ControlCommand::kDecayMs:
      if (argument - 1 < kMaxDecayMs) return ProductAce().SetDecay(argument);
      break;
  }
  return 0;
}

}  // namespace

void WantControl() {
  if (CurrentOptions().control == 0) return;
  g_allowed.store(1, std::memory_order_relaxed);
  WantSlowWork(SlowWork::kControl);
}

void ObeyControl() {
  if (g_allowed.load(std::memory_order_relaxed) == 0) return;
  // acquire: pairs with the order of the writes from outside.
  const std::uint64_t request = g_request.load(std::memory_order_acquire);
  std::uint64_t taken = g_taken.load(std::memory_order_relaxed);
  if (request == taken || !IsControlRequest(request)) return;  // CM1
  // CM2
  if (!g_taken.compare_exchange_strong(taken, request,
                                       std::memory_order_relaxed)) {
    return;
  }
  g_result.store(Obey(ControlCommandOf(request),
                      g_argument.load(std::memory_order_relaxed)),
                 std::memory_order_relaxed);
  // release: pairs with readers outside of the process, which read the result
  // after this.
  g_done.store(request, std::memory_order_release);
}

}  // namespace hakmem

extern "C" HAK_EXPORT_OWN constinit const hakmem::ControlTables hakmem_control =
    {.magic = "hakctrl",
     .version = hakmem::ControlTables::kVersion,
     .table_bytes = sizeof(hakmem::ControlTables),
     .allowed = &hakmem::g_allowed,
     .argument = &hakmem::g_argument,
     .request = &hakmem::g_request,
     .done = &hakmem::g_done,
     .result = &hakmem::g_result};
