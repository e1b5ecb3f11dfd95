// The variants of hakmem: each is one constexpr value of Config.
//
// Owns: which checks and records a product has. Called by: every layer.
// Thread-safety: constants. Hot classes take one `const Config&` template
// parameter and ask it with `if constexpr`; ACE and the region, which are
// ordinary classes, are told theirs when they start. No other switch exists.
//
// Invariants:
//   C1: a variant that checks invariants also checks the header on reuse.
//   C2: whoever checks kinds, copies, or the fill of free blocks, checks
//       bounds; who checks the fill clears blocks when they are freed.
//   C3: a variant with guard pages separates classes, so that a guard is set up
//       once for all. A variant with memory closed until granted has guard
//       pages, so that one call does both.
//   C4: what is done to a block beside serving it (core/hardening.h) comes with
//       bounds, and bounds come with separate classes.
//   C5: types are separate where blocks rest: there, who frees a block has no
//       say in who gets it, so that each goes back to a heap of its partition.
#ifndef HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_
#define HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_

namespace hakmem {

struct Config {
  // Name as users write it: `--//allocator:variant=NAME`, hakmem_variant().
  const char* name;
  // Counts reallocs that kept their block and those that moved it.
  bool count_reallocs = false;
  // Each call can be written to a file (HAKMEM_TRACE).
  bool trace_calls = false;
  // A call that was served in spite of a refusal is a failure event, too.
  bool report_detours = false;
  // A block taken from a magazine must bear its Free header; anything else is
  // a damaged table and is fatal at once.
  bool check_header_on_reuse = false;
  // Blocks are cleared when they are freed, so secrets do not outlive them.
  bool zero_on_free = false;
  // The size that each block was asked for with is kept, and has to be given
  // exactly to sized frees; what is beyond it bears a canary.
  bool check_bounds = false;
  // A block is freed by the family of functions that allocated it.
  bool check_kinds = false;
  // Freed blocks and spans rest before they are used again, and come back in
  // random order; so do blocks of a new slab.
  bool delay_reuse = false;
  // A block about to be used again must be as clear as it was left.
  bool check_fill_on_reuse = false;
  // Addresses that have been a slab's of one class, or a span's of one length,
  // are never again used for anything else.
  bool separate_classes = false;
  // Blocks for which the program passes an allocation token have slabs, spans
  // and SuperSlabs of their token's partition (config/partitions.h).
  bool separate_types = false;
  // Inaccessible pages after spans and after slabs of Pool classes, as far as a
  // share of the kernel's limit on mappings allows.
  bool guard_pages = false;
  // Memory for slabs and spans is mapped without access, and opened when it is
  // granted first; where that takes no call of its own.
  bool closed_until_granted = false;
  // Blocks of size 0 are addresses that cannot be read or written.
  bool inaccessible_empty_blocks = false;
  // Each table lies at a random address of its own.
  bool scattered_tables = false;
  // memcpy and its relatives are the library's own, and write to a block within
  // its bounds or not at all.
  bool check_copies = false;
  // The options are read-only once they have been read.
  bool sealed_options = false;
  // After each slow path the invariants of what it touched are checked, and
  // those of the whole as often as half of a thread's time allows.
  bool check_invariants = false;
  // Where each block was allocated, and where it was freed last, is kept for
  // reports and HAKMEM_LEAKS.
  bool record_stacks = false;
};

constexpr bool IsValid(const Config& config) {
  return (!config.check_invariants || config.check_header_on_reuse) &&
         (!config.check_kinds || config.check_bounds) &&
         (!config.record_stacks || config.check_bounds) &&
         (!config.check_copies || config.check_bounds) &&
         (!config.check_fill_on_reuse ||
          (config.zero_on_free && config.check_bounds)) &&
         (!config.guard_pages || config.separate_classes) &&
         (!config.closed_until_granted || config.guard_pages) &&
         (!config.separate_types ||
          (config.separate_classes && config.delay_reuse)) &&
         (config.check_bounds ||
          !(config.check_header_on_reuse || config.zero_on_free ||
            config.delay_reuse || config.inaccessible_empty_blocks)) &&
         (!config.check_bounds || config.separate_classes);
}

inline constexpr Config kRelease = {.name = "release"};
inline constexpr Config kTracing = {.name = "tracing",
                                    .count_reallocs = true,
                                    .trace_calls = true,
                                    .report_detours = true};
inline constexpr Config kHardened = {.name = "hardened",
                                     .check_header_on_reuse = true,
                                     .zero_on_free = true,
                                     .check_bounds = true,
                                     .check_kinds = true,
                                     .delay_reuse = true,
                                     .check_fill_on_reuse = true,
                                     .separate_classes = true,
                                     .separate_types = true,
                                     .guard_pages = true,
                                     .closed_until_granted = true,
                                     .inaccessible_empty_blocks = true,
                                     .scattered_tables = true,
                                     .check_copies = true,
                                     .sealed_options = true};
// Hardened, with what finds mistakes of hakmem's own, and tells more of others,
// and what that needs.
inline constexpr Config kDebug = [] {
  Config config = kHardened;
  config.name = "debug";
  config.count_reallocs = true;
  config.check_invariants = true;
  config.record_stacks = true;
  return config;
}();

static_assert(IsValid(kRelease) && IsValid(kTracing));
static_assert(IsValid(kHardened) && IsValid(kDebug));

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_
