// Names for the stacks of heap profiles, and which of their frames are shown.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/perf_map.h"

namespace hakmem::tools {

HeapSymbols::HeapSymbols(const HeapModules& modules, SymbolizerOptions options,
                         FramePolicy policy)
    : modules_(modules),
      symbolizer_(std::move(options)),
      policy_(std::move(policy)) {}

void HeapSymbols::Resolve(const HeapProfiles& profiles) {
  std::vector<Frame> frames;
  for (const HeapProfile& profile : profiles.last) {
    for (const HeapSite& site : profile.sites) {
      frames.insert(frames.end(), site.stack.begin(), site.stack.end());
    }
  }
  for (const auto& [at, lines] : modules_.names()) {
    symbolizer_.Know({.module = at.first, .offset = at.second}, lines);
  }
  symbolizer_.Resolve(modules_.list(), frames);
}

std::string_view HeapSymbols::PathOf(const Frame& frame) const {
  if (frame.module == Frame::kNoModule) return "";
  return modules_.list()[frame.module].path;
}

void HeapSymbols::AddCalls(const Frame& frame,
                           const std::vector<SourceLine>& lines,
                           std::vector<NamedCall>& calls) const {
  AddNamedCalls(lines, PathOf(frame), frame.offset, calls);
}

std::vector<ShownFrame> HeapSymbols::Shown(
    const std::vector<Frame>& stack) const {
  std::vector<ShownFrame> frames;
  bool was_starter = false;
  std::vector<NamedCall> calls;
  // So many of both are left without what begins each stack.
  std::size_t left = 0;
  std::size_t left_calls = 0;
  const bool hides_runtime =
      policy_.fold && std::ranges::any_of(stack, [this](const Frame& frame) {
        return PerfMap::IsItsName(PathOf(frame));
      });
  for (std::size_t at = 0; at < stack.size(); ++at) {
    ShownFrame frame = {.at = at, .lines = symbolizer_.Lines(stack[at])};
    std::erase_if(frame.lines,
                  [](const SourceLine& line) { return line.function.empty(); });
    std::vector<NamedCall> own;
    AddCalls(stack[at], frame.lines, own);
    for (std::size_t i = own.size(); i-- > 0;) {
      if (!policy_.hide.Matches(own[i]) &&
          !(hides_runtime && RuntimeOf(own[i].module) != nullptr)) {
        continue;
      }
      own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
      if (!frame.lines.empty()) {
        frame.lines.erase(frame.lines.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (own.empty()) continue;
    calls.insert(calls.end(), own.begin(), own.end());
    frames.push_back(std::move(frame));
    // A stripped program's _start has no name.
    const bool is_start =
        was_starter && !own.front().has_name && at + 1 == stack.size();
    const bool is_starter = std::ranges::all_of(own, IsStarter);
    if (!is_starter && !is_start) {
      left = frames.size();
      left_calls = calls.size();
    }
    was_starter = is_starter && own.front().has_name;
  }
  if (policy_.fold && left > 0) {
    frames.resize(left);
    calls.resize(left_calls);
  }
  std::size_t folded = policy_.fold ? PassingOn(calls) : 0;
  auto first = frames.begin();
  for (; folded > 0; ++first) {
    const std::size_t own = std::max<std::size_t>(first->lines.size(), 1);
    if (own > folded) break;
    folded -= own;
  }
  if (folded > 0) {
    first->lines.erase(
        first->lines.begin(),
        first->lines.begin() + static_cast<std::ptrdiff_t>(folded));
  }
  frames.erase(frames.begin(), first);
  return frames;
}

std::vector<NamedCall> HeapSymbols::Calls(
    const std::vector<Frame>& stack) const {
  std::vector<NamedCall> calls;
  for (const ShownFrame& frame : Shown(stack)) {
    AddCalls(stack[frame.at], frame.lines, calls);
  }
  return calls;
}

std::vector<std::string> HeapSymbols::Texts(
    const std::vector<Frame>& stack) const {
  std::vector<std::string> texts;
  for (const ShownFrame& frame : Shown(stack)) {
    std::vector<NamedCall> calls;
    AddCalls(stack[frame.at], frame.lines, calls);
    for (const NamedCall& call : calls) {
      texts.push_back(call.has_name ? call.text
                                    : absl::StrCat(call.text, " of module ",
                                                   stack[frame.at].module));
    }
  }
  return texts;
}

void HeapSymbols::KeepShown(HeapProfile& profile, OnePlace one) const {
  std::map<std::vector<std::string>, std::size_t> by_stack;
  std::vector<HeapSite> sites;
  for (const HeapSite& site : profile.sites) {
    std::vector<NamedCall> calls;
    for (const Frame& frame : site.stack) {
      AddCalls(frame, symbolizer_.Lines(frame), calls);
    }
    const std::vector<ShownFrame> frames = Shown(site.stack);
    if (policy_.selects() && (frames.empty() || !policy_.Selects(calls))) {
      continue;
    }
    HeapSite shown = {.figures = site.figures, .addresses = {}, .stack = {}};
    for (const ShownFrame& frame : frames) {
      shown.addresses.push_back(site.addresses[frame.at]);
      shown.stack.push_back(site.stack[frame.at]);
    }
    std::vector<std::string> key = Texts(shown.stack);
    if (one == OnePlace::kOfAddresses) {
      for (const Frame& frame : shown.stack) {
        key.push_back(absl::StrCat(frame.module, " ", frame.offset));
      }
    }
    const auto [found, is_new] = by_stack.try_emplace(key, sites.size());
    if (is_new) {
      sites.push_back(std::move(shown));
    } else {
      sites[found->second].figures += site.figures;
    }
  }
  profile.sites = std::move(sites);
  if (!policy_.selects()) return;
  // The sums are of what is shown.
  profile.counted.reset();
  profile.totals = {};
  for (const HeapSite& site : profile.sites) profile.totals += site.figures;
}

HeapProfiles HeapSymbols::Shown(HeapProfiles profiles, OnePlace one) const {
  for (HeapProfile& profile : profiles.last) KeepShown(profile, one);
  return profiles;
}

}  // namespace hakmem::tools
