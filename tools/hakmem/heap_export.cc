// Heap profiles for other programs: folded stacks, and pprof's profile.proto.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/pprof_profile.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// What a line's syntax takes for itself is no part of a name.
std::string FoldedName(const std::string& name) {
  return absl::StrReplaceAll(ForTerminal(name), {{";", ":"}});
}

std::string FoldedStack(const HeapReport& report, const HeapProfile& profile,
                        const HeapSite& site) {
  std::string stack;
  for (const NamedCall& call : report.symbols.Calls(site.stack)) {
    stack = absl::StrCat(FoldedName(call.function), stack.empty() ? "" : ";",
                         stack);
  }
  if (stack.empty()) stack = "(no stack)";
  if (report.profiles.last.size() == 1) return stack;
  return absl::StrCat(FoldedName(ProcessName(profile)), ";", stack);
}

class PprofExport {
 public:
  explicit PprofExport(const HeapReport& report) : report_(report) {}

  std::string Make() {
    for (const char* const name : {"alloc", "inuse", "peak"}) {
      profile_.AddSampleType(absl::StrCat(name, "_objects"), "count");
      profile_.AddSampleType(absl::StrCat(name, "_space"), "bytes");
    }
    for (const HeapProfile& profile : report_.profiles.last) Add(profile);
    profile_.SetPeriod("space", "bytes",
                       report_.profiles.last.front().mean_bytes);
    std::uint64_t time_ns = 0;
    for (const HeapProfile& profile : report_.profiles.last) {
      time_ns = std::max(time_ns, profile.time_ns);
    }
    profile_.SetTime(time_ns, report_.duration_ns);
    profile_.SetDefaultSampleType(report_.by == HeapKind::kLive ? "inuse_space"
                                  : report_.by == HeapKind::kPeak
                                      ? "peak_space"
                                      : "alloc_space");
    return profile_.Finish();
  }

 private:
  void Add(const HeapProfile& profile) {
    AddMappings(profile);
    for (const HeapSite& site : profile.sites) {
      std::vector<std::uint64_t> locations;
      for (const ShownFrame& frame : report_.symbols.Shown(site.stack)) {
        const std::uint64_t address = site.addresses[frame.at];
        locations.push_back(profile_.Location(MappingAt(profile, address),
                                              address, frame.lines));
      }
      const HeapKinds& figures = site.figures;
      profile_.AddSample(locations,
                         {figures.allocated.blocks, figures.allocated.bytes,
                          figures.live.blocks, figures.live.bytes,
                          figures.peak.blocks, figures.peak.bytes},
                         "pid", profile.pid);
    }
  }

  // The program's own comes first.
  void AddMappings(const HeapProfile& profile) {
    mapping_ids_.clear();
    const std::size_t program = ProgramModule(profile);
    for (const bool own : {true, false}) {
      for (const HeapMapping& mapping : profile.mappings) {
        if ((mapping.module == program) != own) continue;
        const Module& module = report_.symbols.modules()[mapping.module];
        mapping_ids_[mapping.begin] =
            profile_.AddMapping({.begin = mapping.begin,
                                 .end = mapping.end,
                                 .file_offset = mapping.offset,
                                 .path = module.path,
                                 .build_id = module.build_id});
      }
    }
  }

  // That of the program's name, or else where the first stack begins: a
  // program's name may be a link's.
  std::size_t ProgramModule(const HeapProfile& profile) const {
    const std::string ending = absl::StrCat("/", profile.program);
    for (const HeapMapping& mapping : profile.mappings) {
      if (absl::EndsWith(report_.symbols.modules()[mapping.module].path,
                         ending)) {
        return mapping.module;
      }
    }
    for (const HeapSite& site : profile.sites) {
      if (!site.stack.empty()) return site.stack.back().module;
    }
    return Frame::kNoModule;
  }

  std::uint64_t MappingAt(const HeapProfile& profile,
                          std::uint64_t address) const {
    for (const HeapMapping& mapping : profile.mappings) {
      if (address >= mapping.begin && address < mapping.end) {
        return mapping_ids_.at(mapping.begin);
      }
    }
    return PprofProfile::kNoMapping;
  }

  const HeapReport& report_;
  PprofProfile profile_;
  // Of the process that is being added, by beginning.
  std::map<std::uint64_t, std::uint64_t> mapping_ids_;
};

}  // namespace

std::string HeapAsFolded(const HeapReport& report) {
  std::map<std::string, std::uint64_t> stacks;
  for (const HeapProfile& profile : report.profiles.last) {
    for (const HeapSite* const site : SitesBy(profile, report.by)) {
      stacks[FoldedStack(report, profile, *site)] +=
          site->figures.Of(report.by).bytes;
    }
  }
  std::string text;
  for (const auto& [stack, bytes] : stacks) {
    absl::StrAppend(&text, stack, " ", bytes, "\n");
  }
  return text;
}

std::string HeapAsPprof(const HeapReport& report) {
  return PprofExport(report).Make();
}

}  // namespace hakmem::tools
