#include "allocator/frontend/startup_options.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

#include "allocator/base/line_end.h"
#include "allocator/base/units.h"
#include "allocator/failures/cgroup_limits.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/misuse_reports.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/platform/mapping_probe.h"
#include "allocator/platform/start_filter.h"
#include "allocator/process/output_file.h"
#include "allocator/process/process.h"

namespace hakmem {

// Pages of their own, so that they can be sealed. They are zero at first, so
// that the library's file has no room for them.
struct alignas(kSealedBytes) OptionPages {
  std::byte bytes[sizeof(OptionTables)];
};
static_assert(alignof(OptionTables) <= kSealedBytes);
constinit OptionPages g_option_pages{};

namespace {

// An aggregate is there as soon as the bytes are.
static_assert(std::is_aggregate_v<OptionTables>);
ParsedOptions& Parsed() {
  return std::launder(reinterpret_cast<OptionTables*>(g_option_pages.bytes))
      ->parsed;
}

// The addresses of guarded blocks are reserved: a small part of a small limit.
void FitGuards(Options& options) {
  constexpr std::uint64_t kShare = 32;
  constexpr std::uint64_t kSlotBytes = 68 * kKiB;
  if (options.guard_sample == 0) return;
  options.guard_slots =
      std::min(options.guard_slots, SoftLimit(RLIMIT_AS) / kShare / kSlotBytes);
}

}  // namespace

const HeapOptions& StartupOptions() {
  // First, as it says what may be called.
  IsFiltered();
  NoteStandardError();
  NoteProgram(ProgramName());
  ParsedOptions& parsed = (new (g_option_pages.bytes) OptionTables())->parsed;
  // Before what is read: warnings name the default that holds.
  SampleHardened(parsed, ProductVariant());
  ReadOptions(parsed);
  WarnOfOtherVariants(parsed, ProductVariant());
  WarnOfMissingOptions(parsed, ProductVariant());
  WarnOfWeakened(parsed, ProductVariant());
  if (!ProductHasAllOperators() || parsed.values.deep_bind != 0) {
    LeaveKindsAlone(parsed);
  }
  parsed.values.kinds_asked_for =
      OriginOf(&Options::check_kinds, parsed) == OptionOrigin::kEnvironment;
  parsed.values.find_memory_limit = FindCgroupMemory;
  FitGuards(parsed.values);
  if (parsed.values.show_config != 0) {
    PrintConfig(parsed, ProductVariant(), [](std::string_view lines) {
      WriteFd(StandardError(), lines);
    });
  }
  KeepFolderFor(parsed.values.stats);
  KeepFolderFor(parsed.values.heap_profile);
  KeepFolderFor(parsed.values.leaks);
  ProductReporter().Start(parsed, ProductVariant());
  StartMisuseReports(parsed.values);
  ProductFailNth(parsed.values.fail_nth / 2, parsed.values.fail_nth % 2 != 0);
  ProductEnableRecords();
  return parsed.values;
}

const HeapOptions& SealedStartupOptions() {
  const HeapOptions& options = StartupOptions();
  SealObject(&g_option_pages, sizeof(g_option_pages));
  return options;
}

const Options& CurrentOptions() { return Parsed().values; }

bool AreGuardsAskedFor() {
  return OriginOf(&Options::guard_sample, Parsed()) ==
         OptionOrigin::kEnvironment;
}

}  // namespace hakmem
