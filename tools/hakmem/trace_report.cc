#include "tools/hakmem/trace_report.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/call_trace/call_trace_format.h"
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
  return {calls.begin() + static_cast<std::ptrdiff_t>(PassingOn(calls)),
          calls.end()};
}

std::uint64_t TraceReport::dropped() const {
  if (blocks.end.has_value()) return blocks.end->dropped;
  std::uint64_t dropped = 0;
  for (const auto& [number, thread] : blocks.threads) dropped += thread.dropped;
  return dropped;
}

std::string TraceReport::ThreadName(std::uint64_t number) const {
  const auto found = blocks.threads.find(number);
  if (found == blocks.threads.end()) return absl::StrCat("thread ", number);
  const TraceThreadFacts& thread = found->second;
  if (number == call_trace::kSharedThread) return thread.name;
  return absl::StrCat(thread.name.empty() ? "thread" : thread.name, " (",
                      thread.thread_id, ")");
}

std::string TraceReport::CauseName(const TraceAnalysis::FailureKey& key) const {
  const TraceFacts& facts = blocks.facts();
  const auto& [call, reason, detail, disposition] = key;
  return absl::StrCat(NameOf(facts.reasons, reason), "/",
                      NameOf(facts.details, detail));
}

std::vector<TraceSite> SitesByBytes(const TraceAnalysis& analysis) {
  std::vector<TraceSite> sites;
  for (const auto& [key, tally] : analysis.sites()) {
    sites.push_back({key.first, key.second, tally});
  }
  std::sort(sites.begin(), sites.end(),
            [](const TraceSite& a, const TraceSite& b) {
              return std::tuple(b.blocks.allocated_bytes, b.blocks.allocations,
                                a.stack, a.call) <
                     std::tuple(a.blocks.allocated_bytes, a.blocks.allocations,
                                b.stack, b.call);
            });
  return sites;
}

std::vector<std::string> TraceRemarks(const TraceReport& report) {
  std::vector<std::string> remarks;
  const TraceFacts& facts = report.blocks.facts();
  const TraceAnalysis& analysis = report.analysis;
  if (!report.blocks.start.has_value()) {
    remarks.push_back(
        "The trace's start is missing: names, classes and the sample are not "
        "known.");
  }
  if (facts.sample > 1) {
    remarks.push_back(absl::StrCat(
        "Counts and bytes are estimates, from the blocks at one in ",
        facts.sample, " addresses."));
  }
  if (report.dropped() > 0) {
    remarks.push_back(absl::StrCat(
        Count(report.dropped(), "event was", "events were"),
        " dropped because the trace could not be written fast enough; live "
        "memory may be wrong by as many blocks."));
  }
  if (!report.blocks.end.has_value()) {
    remarks.push_back(
        "The trace has no end: the process was killed, ended by _exit or exec, "
        "or is still running.");
  } else if (report.blocks.end->signal != 0) {
    remarks.push_back(absl::StrCat("The process died of signal ",
                                   report.blocks.end->signal, "."));
  }
  if (analysis.unknown_frees() > 0) {
    remarks.push_back(
        absl::StrCat(Count(analysis.unknown_frees(), "release", "releases"),
                     " of blocks whose allocation the trace does not have."));
  }
  if (analysis.lost_frees() > 0) {
    remarks.push_back(absl::StrCat(
        Count(analysis.lost_frees(), "block was", "blocks were"),
        " released without an event: their addresses came again."));
  }
  const TraceDamage& damage = report.blocks.damage;
  if (damage.bytes() > 0) {
    remarks.push_back(absl::StrCat(
        Count(damage.bytes(), "byte", "bytes"), " in ",
        Count(damage.places(), "place", "places"), " could not be read:"));
    for (const std::string& note : damage.notes()) {
      remarks.push_back(absl::StrCat("  ", ForTerminal(note)));
    }
    if (damage.places() > damage.notes().size()) remarks.push_back("  …");
  }
  for (const std::string& note : report.symbols.notes()) {
    remarks.push_back(note);
  }
  return remarks;
}

std::string Duration(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return absl::StrCat(ns, " ns");
  if (ns < 1'000'000) return absl::StrFormat("%.3g us", value / 1e3);
  if (ns < 1'000'000'000) return absl::StrFormat("%.3g ms", value / 1e6);
  if (ns < 600'000'000'000) return absl::StrFormat("%.3g s", value / 1e9);
  return absl::StrFormat("%.1f min", value / 60e9);
}

}  // namespace hakmem::tools
