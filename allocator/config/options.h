// The environment options: one table from which parsing, HAKMEM_SHOW_CONFIG
// and docs/options.md are made.
//
// Owns: the options' values. Called by: options, failures, frontend.
// Thread-safety: written once while the allocator initialises, then read-only.
//
// To add one: a field in Options (in HeapOptions, when ace, heap or core read
// it), a row in kOptionRows, a reader.
#ifndef HAKMEM_ALLOCATOR_CONFIG_OPTIONS_H_
#define HAKMEM_ALLOCATOR_CONFIG_OPTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "allocator/config/heap_options.h"

namespace hakmem {

// Options for others than the heap, whose own are inherited. Numbers without a
// comment are 0 or 1. A path is "", none (also from "0"), "1", standard error,
// or a file to append to, in whose name %p is the process.
struct Options : HeapOptions {
  std::uint64_t show_config = 0;
  char stats[kMaxOptionPathBytes] = "";
  std::uint64_t stats_at_signals = 0;
  // 0: none. 1: beside a second thread of the program. 2: in any case.
  std::uint64_t background = 0;
  std::uint64_t control = 0;
  // Tracing variant. "1": hakmem.%p.trace; a file is made anew.
  char trace[kMaxOptionPathBytes] = "";
  // One in so many addresses is traced.
  std::uint64_t trace_sample = 1;
  std::uint64_t trace_stacks = 0;
  // No path: SIZE:COUNT, more after commas (option_parser.h reads them).
  char prewarm[kMaxOptionPathBytes] = "";
  // Also "fd:N".
  char ace_trace[kMaxOptionPathBytes] = "";
  // Variants that check copies.
  std::uint64_t check_source = 0;
  char heap_profile[kMaxOptionPathBytes] = "";
  // Debug variant.
  char leaks[kMaxOptionPathBytes] = "";
  // 0: none; else 2 * n, and 1 more when the calls after the nth are refused,
  // too.
  std::uint64_t fail_nth = 0;
  // 0: never. 1: in the process that was started. 2: in children of forks, too.
  // Variants that keep bounds.
  std::uint64_t check_at_exit = 1;
  // An OnMisuse.
  std::uint64_t on_misuse = 0;
  std::uint64_t check_sizes = 1;
  // Hardened says at start which options weaken it.
  std::uint64_t warn_weakened = 1;
  // "" is standard error, too. Also "syslog".
  char report[kMaxOptionPathBytes] = "1";
  std::uint64_t crash_report = 0;
  std::uint64_t deep_bind = 0;
};

enum class OptionType : std::uint8_t {
  kFlag,    // 0 or 1
  kNumber,  // a decimal number
  kBytes,   // a decimal number, with an optional suffix K, M, G or T (powers of
            // 1024)
  kBytesOrAll,  // the same, or the word all, which is kNoMaximum
  kChoice,      // one of the words of `unit`, which '|' separates; its number
  kSizes,       // a list of SIZE:COUNT with commas between; nothing for none
  kOrdinal,     // a decimal number n, or n+ for the nth and all that follow;
                // 2 * n, and 1 more for n+
  kPath,        // 0 or nothing for none, 1 for standard error, else a path
};

// What is written of an option.
struct OptionRow {
  const char* name;  // of the environment variable
  OptionType type;
  const char* unit;
  const char* sentence;
  std::uint64_t Options::* number;             // unless kPath or kSizes
  char (Options::*path)[kMaxOptionPathBytes];  // kPath, kSizes
  std::uint64_t minimum;
  std::uint64_t maximum;
  const char* variants = "";  // those that have it; "": all
  const char* one = nullptr;  // kPath: what 1 stands for; null: stderr
};

// What the library has of it: no words for the document, and no pointers, of
// which each would have to be relocated at start.
struct OptionSpec {
  constexpr explicit OptionSpec(const OptionRow& row)
      : type(row.type),
        one_is_stderr(row.one == nullptr),
        number(row.number),
        path(row.path),
        minimum(row.minimum),
        maximum(row.maximum) {
    Copy(row.name, name);
    Copy(row.variants, variants);
    if (row.type != OptionType::kPath) Copy(row.unit, unit);
  }

  char name[24] = {};
  char unit[28] = {};  // kPath: none
  char variants[20] = {};
  OptionType type;
  bool one_is_stderr;  // kPath
  std::uint64_t Options::* number;
  char (Options::*path)[kMaxOptionPathBytes];
  std::uint64_t minimum;
  std::uint64_t maximum;

 private:
  // A text that is too long is no constant.
  static constexpr void Copy(const char* from, char* to) {
    while (*from != '\0') *to++ = *from++;
    *to = '\0';
  }
};

inline constexpr std::uint64_t kNoMaximum =
    std::numeric_limits<std::uint64_t>::max();

inline constexpr OptionRow kOptionRows[] = {
    {"HAKMEM_SHOW_CONFIG", OptionType::kFlag, "",
     "Prints variant, version, compiler and every option with its origin at "
     "start.",
     &Options::show_config, nullptr, 0, 1},
    {"HAKMEM_STATS", OptionType::kPath, "",
     "Writes one line of JSON at exit: what was served by route, where memory "
     "is by class, waits for locks (docs/statistics.md).",
     nullptr, &Options::stats, 0, 0},
    {"HAKMEM_STATS_AT_SIGNALS", OptionType::kFlag, "",
     "Writes the line of HAKMEM_STATS also where SIGHUP, SIGINT or SIGTERM "
     "ends the process. The program then finds a handler there, so that some "
     "(CPython and Ruby) set up none of their own.",
     &Options::stats_at_signals, nullptr, 0, 1},
    {"HAKMEM_DECAY_MS", OptionType::kNumber, "milliseconds",
     "How long freed memory is kept before it goes back to the kernel.",
     &Options::decay_ms, nullptr, 0, 24ULL * 3600 * 1000},
    {"HAKMEM_BACKGROUND", OptionType::kNumber, "",
     "A thread of hakmem's own gives idle memory back while the program "
     "sleeps. The "
     "hardened and debug variants look for damaged blocks meanwhile. 1: it "
     "starts when a second thread of the program allocates. 2: it starts at "
     "once, also in a program of one thread, which then cannot enter a user "
     "namespace by unshare or setns.",
     &Options::background, nullptr, 0, 2},
    {"HAKMEM_CONTROL", OptionType::kFlag, "",
     "Who may trace the process may have it give memory back and set its decay "
     "delay, by hakmem purge and hakmem option (docs/statistics.md).",
     &Options::control, nullptr, 0, 1},
    {"HAKMEM_MAX_ALLOC", OptionType::kBytes, "bytes",
     "The largest request that is served; larger ones fail with ENOMEM.",
     &Options::max_alloc_bytes, nullptr, 64 * 1024, kNoMaximum},
    {"HAKMEM_HEAP_LIMIT", OptionType::kBytes, "bytes",
     "The most memory for blocks and what is kept of freed ones; beyond it "
     "calls fail with ENOMEM.",
     &Options::heap_limit_bytes, nullptr, 1, kNoMaximum},
    {"HAKMEM_DEPOT", OptionType::kBytes, "bytes",
     "The most that one thread may keep of free blocks beyond two magazines of "
     "each class; a quarter of it, 2 MiB at most, of blocks above 64 KiB, "
     "besides.",
     &Options::depot_bytes, nullptr, 0, 1ULL << 30},
    {"HAKMEM_HUGE_PAGES", OptionType::kChoice, "off|auto|on",
     "Which memory huge pages are asked for: on, all of it; auto, what a heap "
     "takes beyond 2 MiB, while it fills what it has; off, none: the kernel "
     "decides.",
     &Options::huge_pages, nullptr, 0, 2},
    {"HAKMEM_PREFAULT", OptionType::kChoice, "off|populate",
     "Gives the pages of a slab memory before its first block is handed out, "
     "by one call of the kernel.",
     &Options::prefault, nullptr, 0, 1},
    {"HAKMEM_PREWARM", OptionType::kSizes, "SIZE:COUNT[,SIZE:COUNT...]",
     "Has blocks of these sizes, up to 64K, ready before the program starts, "
     "in "
     "its first thread; unused, they go back after the decay delay.",
     nullptr, &Options::prewarm, 1, 64 * 1024},
    {"HAKMEM_CHECK_KINDS", OptionType::kFlag, "",
     "A block that was allocated by new, new[] or malloc is fatal to be freed "
     "by another family; 0 lets it pass, and is the default for a program that "
     "replaces some of new and delete, or holds modules whose operators are "
     "their own (hardened and debug variants).",
     &Options::check_kinds, nullptr, 0, 1, "hardened or debug"},
    {"HAKMEM_CHECK_SIZES", OptionType::kFlag, "",
     "A delete or free_sized with a size that the block was not asked for with "
     "is fatal; 0 lets it pass, and frees the block as it is.",
     &Options::check_sizes, nullptr, 0, 1},
    {"HAKMEM_CHECK_SOURCE", OptionType::kFlag, "",
     "memcpy and its relatives check what they read, too, not only what they "
     "write (hardened and debug variants).",
     &Options::check_source, nullptr, 0, 1, "hardened or debug"},
    {"HAKMEM_CHECK_AT_EXIT", OptionType::kNumber, "",
     "Looks for damaged blocks at exit, in some megabytes. 1: not in children "
     "of forks. 2: there, too (hardened and debug variants; "
     "docs/hardening.md).",
     &Options::check_at_exit, nullptr, 0, 2, "hardened or debug"},
    {"HAKMEM_CLEAR", OptionType::kBytesOrAll, "bytes",
     "So much of each block's beginning is cleared when it is freed, and "
     "looked "
     "at when it is used again; fewer than 256 bytes count as 256 (hardened "
     "and debug variants; docs/hardening.md).",
     &Options::clear_bytes, nullptr, 16, kNoMaximum, "hardened or debug"},
    {"HAKMEM_PARTITIONS", OptionType::kNumber, "partitions",
     "Blocks of code compiled with -fsanitize=alloc-token lie in so many "
     "partitions, by what their type holds; 1: in one (hardened and debug "
     "variants; docs/types_apart.md).",
     &Options::partitions, nullptr, 1, kMostPartitions, "hardened or debug"},
    {"HAKMEM_WARN_WEAKENED", OptionType::kFlag, "",
     "The hardened variant names at start, on standard error, the options that "
     "weaken it (docs/hardening.md).",
     &Options::warn_weakened, nullptr, 0, 1},
    {"HAKMEM_TRACE", OptionType::kPath,
     "0: none; 1: hakmem.%p.trace; else the path of a file, in which %p is "
     "the process",
     "Writes each call that allocates or frees to a file, for hakmem trace "
     "(tracing variant).",
     nullptr, &Options::trace, 0, 0, "tracing", "hakmem.%p.trace"},
    {"HAKMEM_TRACE_SAMPLE", OptionType::kNumber, "addresses",
     "Only the blocks at one in so many addresses are traced, each from its "
     "allocation to its release.",
     &Options::trace_sample, nullptr, 1, 1ULL << 32, "tracing"},
    {"HAKMEM_TRACE_STACKS", OptionType::kFlag, "",
     "Each call is traced with its callers, up to 32.", &Options::trace_stacks,
     nullptr, 0, 1, "tracing"},
    {"HAKMEM_ACE_TRACE", OptionType::kPath,
     "0: none; 1: standard error; fd:N: that descriptor; else the path of a "
     "file to append to, in which %p is the process",
     "Writes a line of JSON for each call that memory could not be had for "
     "(docs/failure_events.md).",
     nullptr, &Options::ace_trace, 0, 0},
    {"HAKMEM_UNWIND", OptionType::kChoice, "tables|frames|none",
     "How callers are found: by the unwind tables, by frame pointers (cheaper, "
     "and misses those that were compiled without), or not at all: of failed "
     "calls, of guarded blocks, of traced calls and of each call in the debug "
     "variant. Reports and the heap profile use tables, or have none.",
     &Options::unwind, nullptr, 0, 2},
    {"HAKMEM_GUARD_SAMPLE", OptionType::kNumber, "allocations",
     "One in so many allocations is put between inaccessible pages, so that "
     "overflows and uses after free are reported; 0: none, the default but in "
     "the hardened variant (100000).",
     &Options::guard_sample, nullptr, 0, 1ULL << 32},
    {"HAKMEM_PROFILE_BYTES", OptionType::kBytes, "bytes",
     "The heap profile samples one in so many bytes that are allocated; 0: "
     "none (docs/heap_profile.md).",
     &Options::profile_bytes, nullptr, 0, 1ULL << 30},
    {"HAKMEM_HEAP_PROFILE", OptionType::kPath, "",
     "Writes the heap profile at exit, and where SIGHUP or SIGTERM ends the "
     "process (Ruby then sets up no handlers of its own for them), as lines of "
     "JSON: what is live, was live at the peak, and was allocated, by the "
     "place that allocated it (docs/heap_profile.md).",
     nullptr, &Options::heap_profile, 0, 0},
    {"HAKMEM_ON_MISUSE", OptionType::kChoice, "abort|trap|log",
     "Chooses what follows the report of a misuse: abort, SIGABRT; trap, a "
     "trap instruction, where a debugger stops; log, the call is refused and "
     "the program goes on.",
     &Options::on_misuse, nullptr, 0, 2},
    {"HAKMEM_REPORT", OptionType::kPath,
     "0 or 1: standard error; syslog: the system's log; else the path of a "
     "file to append to, in which %p is the process",
     "Chooses where reports of misuse, crashes and guarded blocks go.", nullptr,
     &Options::report, 0, 0},
    {"HAKMEM_CRASH_REPORT", OptionType::kFlag, "",
     "On SIGSEGV, SIGBUS and SIGABRT says what the address is to hakmem, and "
     "the call stack, before the signal takes its course. Never replaces a "
     "handler of the program.",
     &Options::crash_report, nullptr, 0, 1},
    {"HAKMEM_DEEP_BIND", OptionType::kFlag, "",
     "Leaves dlopen the flag RTLD_DEEPBIND: libraries opened so call libc's "
     "malloc and free (docs/other_mallocs.md).",
     &Options::deep_bind, nullptr, 0, 1},
    {"HAKMEM_LEAKS", OptionType::kPath, "",
     "Lists at exit what was never freed, by the place that allocated it; to a "
     "file, as lines of JSON (debug variant; docs/debugging.md).",
     nullptr, &Options::leaks, 0, 0, "debug"},
    {"HAKMEM_FAIL_NTH", OptionType::kOrdinal, "calls",
     "For tests: refuses the nth call of the process that asks the kernel for "
     "memory; n+ those that follow, too.",
     &Options::fail_nth, nullptr, 0, 1ULL << 32},
};
inline constexpr std::size_t kOptionCount = std::size(kOptionRows);

inline constexpr auto kOptionTable =
    []<std::size_t... kI>(std::index_sequence<kI...>) {
      return std::array{OptionSpec(kOptionRows[kI])...};
    }(std::make_index_sequence<kOptionCount>());

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_OPTIONS_H_
