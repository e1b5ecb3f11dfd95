// A call trace as a profile of pprof's: profile.proto, compressed by gzip.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/pprof_profile.h"
#include "tools/hakmem/trace_report.h"

namespace hakmem::tools {
namespace {

class TraceProfile {
 public:
  explicit TraceProfile(const TraceReport& report)
      : report_(report), facts_(report.blocks.facts()) {}

  std::string Make() {
    profile_.AddSampleType("alloc_objects", "count");
    profile_.AddSampleType("alloc_space", "bytes");
    profile_.AddSampleType("inuse_objects", "count");
    profile_.AddSampleType("inuse_space", "bytes");
    Mappings();
    if (facts_.has_stacks) {
      SitesAsSamples();
    } else {
      ClassesAsSamples();
    }
    profile_.SetTime(facts_.wall_clock_ns, report_.analysis.duration_ns());
    profile_.SetPeriod("objects", "count", facts_.sample);
    for (const std::string& remark : TraceRemarks(report_)) {
      profile_.AddComment(remark);
    }
    profile_.SetDefaultSampleType("alloc_space");
    return profile_.Finish();
  }

 private:
  // The program's own comes first.
  void Mappings() {
    const std::string ending = absl::StrCat("/", facts_.program);
    for (const bool own : {true, false}) {
      for (const auto& [begin, module] : report_.blocks.modules) {
        if (module.path.ends_with(ending) != own) continue;
        mapping_ids_[begin] =
            profile_.AddMapping({.begin = module.begin,
                                 .end = module.begin + module.bytes,
                                 .file_offset = module.file_offset,
                                 .path = module.path,
                                 .build_id = module.build_id});
      }
    }
  }

  std::uint64_t LocationAt(std::uint64_t address) {
    const TraceModule* const module = report_.symbols.ModuleAt(address);
    return profile_.Location(module == nullptr ? PprofProfile::kNoMapping
                                               : mapping_ids_[module->begin],
                             address, report_.symbols.Lines(address));
  }

  void Sample(const std::vector<std::uint64_t>& locations,
              const BlockTally& tally) {
    profile_.AddSample(locations, {report_.Scaled(tally.allocations),
                                   report_.Scaled(tally.allocated_bytes),
                                   report_.Scaled(tally.live_blocks),
                                   report_.Scaled(tally.live_bytes)});
  }

  void SitesAsSamples() {
    for (const TraceSite& site : SitesByBytes(report_.analysis)) {
      std::vector<std::uint64_t> locations = {
          profile_.LocationNamed(NameOf(facts_.calls, site.call))};
      for (const std::uint64_t address : report_.stacks.At(site.stack)) {
        locations.push_back(LocationAt(address));
      }
      Sample(locations, site.blocks);
    }
  }

  void ClassesAsSamples() {
    for (const auto& [key, tally] : report_.analysis.classes()) {
      const std::string route = TraceRouteName(key.first);
      std::vector<std::uint64_t> locations = {profile_.LocationNamed(route)};
      if (key.second != 0) {
        locations.insert(locations.begin(),
                         profile_.LocationNamed(
                             absl::StrCat("class ", key.second, " bytes")));
      }
      Sample(locations, tally);
    }
  }

  const TraceReport& report_;
  const TraceFacts& facts_;
  PprofProfile profile_;
  std::map<std::uint64_t, std::uint64_t> mapping_ids_;  // by beginning
};

}  // namespace

std::string TraceAsPprof(const TraceReport& report) {
  return Gzipped(TraceProfile(report).Make());
}

}  // namespace hakmem::tools
