// A call trace with all that is known of it, and the forms in which it is
// shown or handed on.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/symbolizer.h"
#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"

namespace hakmem::tools {

// Names for the addresses in a call trace's stacks.
class TraceSymbols {
 public:
  TraceSymbols(const TraceBlocks& blocks, SymbolizerOptions options);

  // Looks up all addresses of these stacks.
  void Resolve(const TraceStacks& stacks, const std::set<StackId>& ids);

  // Null: it is in none that the trace knows.
  const TraceModule* ModuleAt(std::uint64_t address) const;

  // The functions at a return address, those that were inlined first; empty
  // when nothing is known.
  const std::vector<SourceLine>& Lines(std::uint64_t address) const;

  // One for people: "main at program.c:12", "libfoo.so.1+0x12f0", "0x7f00".
  std::vector<std::string> Texts(std::uint64_t address) const;

  // The calls of a stack, innermost first, without those that only pass memory
  // on.
  std::vector<NamedCall> Calls(
      const std::vector<std::uint64_t>& addresses) const;

  const std::set<std::string>& notes() const { return symbolizer_.notes(); }

 private:
  Frame FrameOf(std::uint64_t address) const;
  void AddCalls(std::uint64_t address, std::vector<NamedCall>& calls) const;

  const TraceBlocks& blocks_;
  Symbolizer symbolizer_;
  std::vector<Module> modules_;
  std::map<std::uint64_t, std::size_t> index_of_;  // by a mapping's beginning
};

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
