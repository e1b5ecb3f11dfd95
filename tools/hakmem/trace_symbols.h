// Names for the addresses in a call trace's stacks.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_SYMBOLS_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_SYMBOLS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/hakmem/call_names.h"
#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/symbolizer.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"

namespace hakmem::tools {

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

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_SYMBOLS_H_
