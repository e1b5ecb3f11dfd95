#include "allocator/stacks/startup_modules.h"

#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hakmem {
namespace {

constexpr unsigned kMaxModules = 128;

enum class State : std::uint8_t { kUnread, kReading, kRead };

// Written by the constructor, before the program has threads; read by all.
constinit std::atomic<unsigned> g_noted{0};
// Written by the thread that reads the list, which kReading makes the only one;
// read by all.
constinit std::atomic<State> g_state{State::kUnread};
// Sorted by where they begin. Written while kReading stands, read after kRead.
constinit unsigned g_count = 0;
constinit ModuleRange g_ranges[kMaxModules] = {};

bool IsIn(std::uintptr_t address, const ModuleRange& range) {
  return address - range.begin < range.end - range.begin;
}

// How many of the list's first `count` entries SM1 is true of.
unsigned CountAtStartup(unsigned count) {
  const auto own = reinterpret_cast<std::uintptr_t>(&CountAtStartup);
  const std::uintptr_t loader = getauxval(AT_BASE);
  for (unsigned i = 0; i < count; ++i) {
    if (IsIn(own, g_ranges[i])) return count;
    if (IsIn(loader, g_ranges[i])) break;
  }
  return count == 0 ? 0 : 1;
}

bool IsRead() {
  // acquire: pairs with the release in ReadOnce.
  return g_state.load(std::memory_order_acquire) == State::kRead;
}

void ReadOnce() {
  const unsigned noted = g_noted.load(std::memory_order_relaxed);
  State unread = State::kUnread;
  if (noted == 0 || !g_state.compare_exchange_strong(
                        unread, State::kReading, std::memory_order_relaxed)) {
    return;
  }
  const unsigned found =
      ReadModuleRanges(g_ranges, std::min(noted, kMaxModules));
  g_count = CountAtStartup(found);
  std::sort(g_ranges, g_ranges + g_count,
            [](const ModuleRange& a, const ModuleRange& b) {
              return a.begin < b.begin;
            });
  // release: pairs with the acquire in IsRead: who sees it sees the ranges.
  g_state.store(State::kRead, std::memory_order_release);
}

}  // namespace

void NoteStartupModules() {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void*) {
        g_noted.store(static_cast<unsigned>(info->dlpi_adds - info->dlpi_subs),
                      std::memory_order_relaxed);
        return 1;  // The first tells of all.
      },
      nullptr);
}

bool FindStartupModule(std::uintptr_t address, ModuleRange& range) {
  if (!IsRead()) {
    ReadOnce();
    if (!IsRead()) return false;
  }
  const ModuleRange* const behind =
      std::upper_bound(g_ranges, g_ranges + g_count, address,
                       [](std::uintptr_t place, const ModuleRange& each) {
                         return place < each.begin;
                       });
  if (behind == g_ranges || !IsIn(address, behind[-1])) return false;
  range = behind[-1];
  return true;
}

}  // namespace hakmem
