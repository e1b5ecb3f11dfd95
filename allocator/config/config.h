// The variants of hakmem: each is one constexpr value of Config.
//
// Owns: which checks and records a product has. Called by: every layer.
// Thread-safety: constants. Hot classes take one `const Config&` template
// parameter and ask it with `if constexpr`; no other switch exists.
//
// Invariants:
//   C1: a variant that checks invariants also checks the header on reuse.
#ifndef HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_
#define HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_

namespace hakmem {

struct Config {
  // Name as users write it: `--//allocator:variant=NAME`, hakmem_variant().
  const char* name;
  // Counts reallocs that kept their block and those that moved it.
  bool count_all_calls = false;
  // Each call can be written to a file (HAKMEM_TRACE).
  bool trace_calls = false;
  // A call that was served in spite of a refusal is a failure event, too.
  bool report_detours = false;
  // A block taken from a magazine must bear its Free header; anything else is
  // a damaged table and is fatal at once.
  bool check_header_on_reuse = false;
  // Blocks are cleared when they are freed, so secrets do not outlive them.
  bool zero_on_free = false;
  // Every so many slow paths of a thread, all invariants of its heap are
  // checked.
  bool check_invariants = false;
};

constexpr bool IsValid(const Config& config) {
  return !config.check_invariants || config.check_header_on_reuse;
}

inline constexpr Config kRelease = {.name = "release"};
inline constexpr Config kTracing = {.name = "tracing",
                                    .count_all_calls = true,
                                    .trace_calls = true,
                                    .report_detours = true};
inline constexpr Config kHardened = {
    .name = "hardened", .check_header_on_reuse = true, .zero_on_free = true};
inline constexpr Config kDebug = {.name = "debug",
                                  .count_all_calls = true,
                                  .check_header_on_reuse = true,
                                  .zero_on_free = true,
                                  .check_invariants = true};

static_assert(IsValid(kRelease) && IsValid(kTracing));
static_assert(IsValid(kHardened) && IsValid(kDebug));

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_CONFIG_H_
