// What `hakmem run` says when the program has ended, and what it cannot vouch
// for: a program that did not use hakmem, a trace that is missing or not whole.
#ifndef HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_
#define HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/session.h"

namespace hakmem::tools {

// Whether the program is loaded by musl's loader, which our libraries are not
// for.
bool IsOfMusl(const std::string& program);

// Why the loader preloads nothing into the program file, as a sentence; "" if
// it does.
std::string WhyNotLoaded(const std::string& program);

// What of the program's calls did not go to hakmem, as a sentence; "" if all
// seem to. `asked`: what its process has asked of hakmem, if that is known.
std::string WhatWentElsewhere(const std::string& program,
                              std::optional<std::uint64_t> asked);

// The same of the programs that were seen to run beside the first: a sentence
// for each that hakmem could not be loaded into, or that brings a malloc. Of
// many, the first and how many more there are.
std::vector<std::string> WhatOthersKeep(const std::set<std::string>& programs);

// Why failures may be missing from the trace, as a sentence; "" if none are.
// `trace` is the value of HAKMEM_ACE_TRACE, `path` the file that it stands for,
// or "".
std::string WhyFailuresMayBeMissing(const Session& session,
                                    const std::string& trace,
                                    const std::string& path);

// From what processes have written to HAKMEM_STATS; the greatest of each.
struct Peaks {
  std::uint64_t mapped = 0;
  std::string mapped_by;  // the program
  // Allocations that hakmem was asked for, by process id.
  std::map<std::uint64_t, std::uint64_t> asked;
};

// Lines that cannot be read are left out: a program may have been killed.
void AddPeaks(std::string_view statistics, Peaks& peaks);

// A few lines for standard error; "" when nothing happened. `trace` is where
// the failures can be read again.
std::string RunSummary(const Session& session, const Peaks& peaks,
                       std::string_view trace);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUN_SUMMARY_H_
