// A call trace with all that is known of it, and the forms in which it is
// shown or handed on.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"
#include "tools/hakmem/trace_symbols.h"

namespace hakmem::tools {

struct TraceReport {
  const std::string& path;
  const TraceBlocks& blocks;
  const TraceStacks& stacks;
  const TraceAnalysis& analysis;
  const TraceSymbols& symbols;

  // What a number of the trace stands for in the program.
  std::uint64_t Scaled(std::uint64_t number) const {
    return number * blocks.facts().sample;
  }
  std::uint64_t dropped() const;
  std::string ThreadName(std::uint64_t number) const;
  // "MapFail/rlimit_as"
  std::string CauseName(const TraceAnalysis::FailureKey& key) const;
};

// Call sites, the one with the most allocated bytes first.
struct TraceSite {
  StackId stack;
  std::uint8_t call;
  BlockTally blocks;
};
std::vector<TraceSite> SitesByBytes(const TraceAnalysis& analysis);

// Sentences about what the numbers leave out.
std::vector<std::string> TraceRemarks(const TraceReport& report);

// "1.5 ms".
std::string Duration(std::uint64_t ns);

std::string TraceAsText(const TraceReport& report, std::size_t max_rows);
std::string TraceAsJson(const TraceReport& report);

// For chrome://tracing and ui.perfetto.dev: memory and calls over time, and the
// failures.
std::string TraceAsChromeJson(const TraceReport& report);

// pprof's profile.proto, compressed by gzip: allocated and live blocks and
// bytes by call site; by route and class where the trace has no stacks.
std::string TraceAsPprof(const TraceReport& report);

// As a page, of at least one: memory over time, and flame graphs of what was
// live at the peak, never freed, temporary and allocated.
std::string TracesAsPage(const std::vector<TraceReport>& reports);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_REPORT_H_
