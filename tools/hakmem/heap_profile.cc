#include "tools/hakmem/heap_profile.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "hakmem-heap-profile";
constexpr std::uint64_t kVersion = 1;

bool GetText(const Json& json, const char* key, std::string& value) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return false;
  value = found->get<std::string>();
  return true;
}

bool GetNumber(const Json& json, const char* key, std::uint64_t& value) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return false;
  value = found->get<std::uint64_t>();
  return true;
}

bool ToAddress(const Json& json, std::uint64_t& value) {
  return json.is_string() &&
         absl::StartsWith(json.get_ref<const std::string&>(), "0x") &&
         absl::SimpleHexAtoi(json.get_ref<const std::string&>(), &value);
}

bool GetAddress(const Json& json, const char* key, std::uint64_t& value) {
  const auto found = json.find(key);
  return found != json.end() && ToAddress(*found, value);
}

bool GetFigures(const Json& json, const char* key, HeapFigures& figures) {
  const auto found = json.find(key);
  return found != json.end() && found->is_object() &&
         GetNumber(*found, "samples", figures.samples) &&
         GetNumber(*found, "blocks", figures.blocks) &&
         GetNumber(*found, "bytes", figures.bytes);
}

bool GetKinds(const Json& json, HeapKinds& kinds) {
  return GetFigures(json, "live", kinds.live) &&
         GetFigures(json, "peak", kinds.peak) &&
         GetFigures(json, "allocated", kinds.allocated);
}

void GetVariances(const Json& json, std::uint64_t mean_bytes, HeapKinds& site) {
  const auto found = json.find("variances");
  std::uint64_t told[3] = {};
  if (found != json.end() && found->is_object() &&
      GetNumber(*found, "live", told[0]) &&
      GetNumber(*found, "peak", told[1]) &&
      GetNumber(*found, "allocated", told[2])) {
    SetVariances(told, mean_bytes, site);
  } else {
    GuessVariances(site);
  }
}

// A block of s bytes that is sampled with the chance p adds s/p to the sum and
// (s/p)^2 (1-p) to the estimate of its variance. The means of the samples stand
// for s/p and 1/p.
double GuessedVariance(const HeapFigures& figures) {
  if (figures.samples == 0 || figures.blocks <= figures.samples) return 0;
  const double samples = static_cast<double>(figures.samples);
  const double chance = samples / static_cast<double>(figures.blocks);
  const double bytes = static_cast<double>(figures.bytes);
  return bytes * bytes * (1 - chance) / samples;
}

Frame FrameOf(const HeapProfile& profile, std::uint64_t address) {
  for (const HeapMapping& mapping : profile.mappings) {
    if (address >= mapping.begin && address < mapping.end) {
      return {.module = mapping.module, .offset = address - mapping.base};
    }
  }
  return {.offset = address};
}

class Reader {
 public:
  explicit Reader(HeapModules& modules) : modules_(modules) {}

  absl::Status Line(std::string_view text) {
    if (text.empty() || text.front() != '{') return absl::OkStatus();
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    std::string kind;
    std::string schema;
    if (json.is_object() && GetText(json, "schema", schema) &&
        schema == kSchema) {
      return Start(json);
    }
    if (!profile_.has_value()) return absl::OkStatus();
    if (!json.is_object() || !GetText(json, "kind", kind) ||
        !Part(kind, json)) {
      ++profile_->unreadable_lines;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<HeapProfiles> Finish() {
    Close();
    if (profiles_.in_file == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("is not a heap profile: no line of it begins one (\"",
                       kSchema, "\")"));
    }
    return std::move(profiles_);
  }

 private:
  absl::Status Start(const Json& json) {
    Close();
    std::uint64_t version = 0;
    if (!GetNumber(json, "version", version) || version != kVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("is a heap profile of version ", version,
                       ", and this command reads version ", kVersion));
    }
    HeapProfile& profile = profile_.emplace();
    if (!GetNumber(json, "pid", profile.pid) ||
        !GetText(json, "program", profile.program) ||
        !GetText(json, "hakmem", profile.version) ||
        !GetText(json, "variant", profile.variant) ||
        !GetNumber(json, "mean_bytes", profile.mean_bytes)) {
      ++profile.unreadable_lines;
    }
    GetNumber(json, "time_ns", profile.time_ns);
    return absl::OkStatus();
  }

  // False: it is not as it should be.
  bool Part(const std::string& kind, const Json& json) {
    if (kind == "module") return OnModule(json);
    if (kind == "site") return OnSite(json);
    return kind != "end" || OnEnd(json);
  }

  bool OnModule(const Json& json) {
    Module module;
    HeapMapping mapping;
    if (!GetText(json, "path", module.path) ||
        !GetAddress(json, "base", mapping.base) ||
        !GetAddress(json, "begin", mapping.begin) ||
        !GetAddress(json, "end", mapping.end)) {
      return false;
    }
    GetText(json, "build_id", module.build_id);
    GetNumber(json, "offset", mapping.offset);
    mapping.module = modules_.Add(module);
    profile_->mappings.push_back(mapping);
    return true;
  }

  bool OnSite(const Json& json) {
    HeapSite site;
    const auto stack = json.find("stack");
    if (!GetKinds(json, site.figures) || stack == json.end() ||
        !stack->is_array()) {
      return false;
    }
    for (const Json& frame : *stack) {
      std::uint64_t address = 0;
      if (!ToAddress(frame, address)) return false;
      site.addresses.push_back(address);
      site.stack.push_back(FrameOf(*profile_, address));
    }
    GetVariances(json, profile_->mean_bytes, site.figures);
    sums_ += site.figures;
    profile_->sites.push_back(std::move(site));
    return true;
  }

  bool OnEnd(const Json& json) {
    std::uint64_t sites = 0;
    if (!GetNumber(json, "sites", sites) ||
        !GetNumber(json, "lost_samples", profile_->lost_samples) ||
        !GetKinds(json, profile_->totals)) {
      return false;
    }
    if (const auto counted = json.find("counted");
        counted != json.end() && counted->is_object()) {
      HeapCount& count = profile_->counted.emplace();
      if (!GetNumber(*counted, "blocks", count.blocks) ||
          !GetNumber(*counted, "bytes", count.bytes)) {
        return false;
      }
    }
    if (std::uint64_t bytes = 0; GetNumber(json, "resident_bytes", bytes)) {
      profile_->resident_bytes = bytes;
    }
    profile_->has_end = true;
    profile_->whole =
        sites == profile_->sites.size() && profile_->unreadable_lines == 0;
    Close();
    return true;
  }

  void Close() {
    if (!profile_.has_value()) return;
    if (profile_->has_end) {
      AddVariances(sums_, profile_->totals);
    } else {
      profile_->totals = sums_;
    }
    sums_ = {};
    profile_->KeepLiveBelowPeak();
    ++profiles_.in_file;
    std::vector<HeapProfile>& last = profiles_.last;
    std::erase_if(last, [this](const HeapProfile& earlier) {
      return earlier.pid == profile_->pid &&
             earlier.program == profile_->program;
    });
    last.push_back(*std::move(profile_));
    profile_.reset();
  }

  HeapModules& modules_;
  HeapProfiles profiles_;
  std::optional<HeapProfile> profile_;  // the one that is being read
  HeapKinds sums_;
};

}  // namespace

void SetVariances(const std::uint64_t (&told)[3], std::uint64_t mean_bytes,
                  HeapKinds& site) {
  const double mean = static_cast<double>(mean_bytes);
  const double unit = mean * mean / 65536;
  site.live.variance = static_cast<double>(told[0]) * unit;
  site.peak.variance = static_cast<double>(told[1]) * unit;
  site.allocated.variance = static_cast<double>(told[2]) * unit;
}

void GuessVariances(HeapKinds& site) {
  for (HeapFigures* figures : {&site.live, &site.peak, &site.allocated}) {
    figures->variance = GuessedVariance(*figures);
  }
}

void AddVariances(const HeapKinds& site, HeapKinds& totals) {
  totals.live.variance += site.live.variance;
  totals.peak.variance += site.peak.variance;
  totals.allocated.variance += site.allocated.variance;
}

void HeapProfile::KeepLiveBelowPeak() {
  if (totals.live.bytes <= totals.peak.bytes) return;
  totals.peak = totals.live;
  for (HeapSite& site : sites) site.figures.peak = site.figures.live;
}

void HeapProfiles::Append(HeapProfiles more) {
  in_file += more.in_file;
  std::ranges::move(more.last, std::back_inserter(last));
}

bool AreOfOneRun(const HeapProfile& before, const HeapProfile& after) {
  if (before.pid != after.pid ||
      before.totals.allocated.samples > after.totals.allocated.samples) {
    return false;
  }
  // A library may be loaded anew as well, but not all of them.
  bool has_moved = false;
  for (const HeapMapping& was : before.mappings) {
    if (was.base == 0) continue;
    for (const HeapMapping& is : after.mappings) {
      if (is.module != was.module) continue;
      if (is.base == was.base) return true;
      has_moved = true;
    }
  }
  return !has_moved;
}

std::size_t HeapModules::Add(const Module& module) {
  // A build may be reached by several names: /lib is a link to /usr/lib.
  const std::string& name =
      module.build_id.empty() ? module.path : module.build_id;
  const auto [found, is_new] = index_of_.try_emplace(name, list_.size());
  if (is_new) list_.push_back(module);
  std::string& source = list_[found->second].source;
  if (source.empty()) source = module.source;
  return found->second;
}

absl::StatusOr<HeapProfiles> ReadHeapProfiles(std::string_view text,
                                              HeapModules& modules) {
  if (text.empty()) {
    return absl::InvalidArgumentError(
        "is empty: the program has written no heap profile yet");
  }
  Reader reader(modules);
  for (const std::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::Status status = reader.Line(line); !status.ok()) return status;
  }
  return reader.Finish();
}

}  // namespace hakmem::tools
