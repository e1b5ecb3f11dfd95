#include "tools/hakmem/trace_symbols.h"

#include <iterator>
#include <utility>

#include "tools/hakmem/words.h"

namespace hakmem::tools {

TraceSymbols::TraceSymbols(const TraceBlocks& blocks, SymbolizerOptions options)
    : blocks_(blocks), symbolizer_(std::move(options)) {
  for (const auto& [begin, module] : blocks.modules) {
    index_of_[begin] = modules_.size();
    modules_.push_back({.path = module.path, .build_id = module.build_id});
  }
}

const TraceModule* TraceSymbols::ModuleAt(std::uint64_t address) const {
  const auto after = blocks_.modules.upper_bound(address);
  if (after == blocks_.modules.begin()) return nullptr;
  const TraceModule& module = std::prev(after)->second;
  return address - module.begin < module.bytes ? &module : nullptr;
}

Frame TraceSymbols::FrameOf(std::uint64_t address) const {
  const TraceModule* const module = ModuleAt(address);
  if (module == nullptr) return {.offset = address};
  return {.module = index_of_.at(module->begin),
          .offset = address - module->base};
}

void TraceSymbols::Resolve(const TraceStacks& stacks,
                           const std::set<StackId>& ids) {
  std::set<std::uint64_t> addresses;
  for (const StackId id : ids) {
    addresses.insert(stacks.At(id).begin(), stacks.At(id).end());
  }
  std::vector<Frame> frames;
  for (const std::uint64_t address : addresses) {
    frames.push_back(FrameOf(address));
  }
  symbolizer_.Resolve(modules_, frames);
}

const std::vector<SourceLine>& TraceSymbols::Lines(
    std::uint64_t address) const {
  return symbolizer_.Lines(FrameOf(address));
}

std::vector<std::string> TraceSymbols::Texts(std::uint64_t address) const {
  std::vector<NamedCall> calls;
  AddCalls(address, calls);
  std::vector<std::string> texts;
  for (const NamedCall& call : calls) texts.push_back(ForTerminal(call.text));
  return texts;
}

void TraceSymbols::AddCalls(std::uint64_t address,
                            std::vector<NamedCall>& calls) const {
  const TraceModule* const module = ModuleAt(address);
  AddNamedCalls(Lines(address), module == nullptr ? "" : module->path,
                FrameOf(address).offset, calls);
}

std::vector<NamedCall> TraceSymbols::Calls(
    const std::vector<std::uint64_t>& addresses) const {
  std::vector<NamedCall> calls;
  for (const std::uint64_t address : addresses) AddCalls(address, calls);
  DropPassingOn(calls);
  return calls;
}

}  // namespace hakmem::tools
