#include "allocator/reports/misuse_policy.h"

#include <atomic>

#include "allocator/base/raw_print.h"
#include "allocator/base/standard_error.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

struct Place {
  // 0: not taken. Written once, by the first misuse there.
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint64_t> count{0};
};
// The last one is for all places that the others have no room for.
constinit Place g_places[kMisusePlaces];

// Whether this thread is making a report.
constinit thread_local bool t_reports HAK_TLS_INITIAL_EXEC = false;

Place& PlaceOf(std::uint64_t key) {
  if (key == 0) key = 1;
  for (unsigned i = 0; i + 1 < kMisusePlaces; ++i) {
    Place& place = g_places[i];
    std::uint64_t found = 0;
    if (place.key.compare_exchange_strong(found, key,
                                          std::memory_order_relaxed) ||
        found == key) {
      return place;
    }
  }
  return g_places[kMisusePlaces - 1];
}

}  // namespace

std::uint64_t CountMisuse(std::uint64_t place) {
  g_misuse_count.fetch_add(1, std::memory_order_relaxed);
  return PlaceOf(place).count.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool IsReported(std::uint64_t count) {
  while (count % 10 == 0 && count != 0) count /= 10;
  return count == 1;
}

void StartReport(std::string_view sentence) {
  if (t_reports) {
    NoteEnd();
    RawPrinter line;
    line.Text("hakmem: fatal: in the middle of a report: ").Text(sentence);
    WriteWarning(line);
    EndAfterMisuse();
  }
  t_reports = true;
}

void EndReport() { t_reports = false; }

void EndAfterMisuse() {
  // Once: what it calls may come back here.
  const auto call =
      internal::g_last_call.exchange(nullptr, std::memory_order_relaxed);
  if (call != nullptr) call();
  // A debugger stops here, with the misuse still on the stack.
  if (CurrentOnMisuse() == OnMisuse::kTrap) __builtin_trap();
  AbortProcess();
}

}  // namespace hakmem
