#include "tools/hakmem/trace_symbols.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
  std::vector<std::string> texts;
  for (const SourceLine& line : Lines(address)) {
    if (line.function.empty()) continue;
    texts.push_back(ForTerminal(
        line.place.empty() ? line.function
                           : absl::StrCat(line.function, " at ", line.place)));
  }
  if (!texts.empty()) return texts;
  const TraceModule* const module = ModuleAt(address);
  if (module == nullptr) return {absl::StrFormat("%#x", address)};
  const std::string name = module->path.substr(module->path.rfind('/') + 1);
  return {absl::StrFormat("%s+%#x", ForTerminal(name), address - module->base)};
}

}  // namespace hakmem::tools
