#include "tools/hakmem/heap_profile.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
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
constexpr std::string_view kBeginning = R"({"schema":"hakmem-heap-profile")";
constexpr std::uint64_t kVersion = 1;

// These throw where there is none, or it is of another type.
const std::string& TextIn(const Json& json, const char* key) {
  return json.at(key).get_ref<const std::string&>();
}

std::uint64_t NumberIn(const Json& json, const char* key) {
  return json.at(key).get_ref<const Json::number_unsigned_t&>();
}

std::uint64_t NumberOr0(const Json& json, const char* key) {
  return json.contains(key) ? NumberIn(json, key) : 0;
}

std::uint64_t AddressIn(const Json& json) {
  std::uint64_t value = 0;
  const auto& text = json.get_ref<const std::string&>();
  if (!absl::StartsWith(text, "0x") || !absl::SimpleHexAtoi(text, &value)) {
    throw std::invalid_argument("no address");
  }
  return value;
}

HeapFigures FiguresIn(const Json& json) {
  return {.samples = NumberIn(json, "samples"),
          .blocks = NumberIn(json, "blocks"),
          .bytes = NumberIn(json, "bytes")};
}

HeapKinds KindsIn(const Json& json) {
  return {.live = FiguresIn(json.at("live")),
          .peak = FiguresIn(json.at("peak")),
          .allocated = FiguresIn(json.at("allocated"))};
}

void GetVariances(const Json& json, std::uint64_t mean_bytes, HeapKinds& site) {
  if (!json.contains("variances")) return GuessVariances(site);
  const Json& told = json.at("variances");
  SetVariances({NumberIn(told, "live"), NumberIn(told, "peak"),
                NumberIn(told, "allocated")},
               mean_bytes, site);
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
    // Before it may stand half a line, of another program or of a process that
    // was killed meanwhile.
    if (const std::size_t at = text.rfind(kBeginning);
        at != std::string_view::npos && at > 0) {
      if (profile_.has_value()) ++profile_->unreadable_lines;
      text.remove_prefix(at);
    }
    if (text.empty() || text.front() != '{') return absl::OkStatus();
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto schema = json.find("schema");
    if (schema != json.end() && *schema == kSchema) return Start(json);
    if (!profile_.has_value()) return absl::OkStatus();
    try {
      Part(TextIn(json, "kind"), json);
    } catch (const std::exception&) {
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
    const auto told = json.find("version");
    const std::uint64_t version =
        told != json.end() && told->is_number_unsigned()
            ? told->get<std::uint64_t>()
            : 0;
    if (version != kVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("is a heap profile of version ", version,
                       ", and this command reads version ", kVersion));
    }
    HeapProfile& profile = profile_.emplace();
    try {
      profile.pid = NumberIn(json, "pid");
      profile.program = TextIn(json, "program");
      profile.version = TextIn(json, "hakmem");
      profile.variant = TextIn(json, "variant");
      profile.mean_bytes = NumberIn(json, "mean_bytes");
      profile.time_ns = NumberOr0(json, "time_ns");
    } catch (const std::exception&) {
      ++profile.unreadable_lines;
    }
    return absl::OkStatus();
  }

  void Part(const std::string& kind, const Json& json) {
    if (kind == "module") OnModule(json);
    if (kind == "site") OnSite(json);
    if (kind == "end") OnEnd(json);
  }

  void OnModule(const Json& json) {
    const Module module = {.path = TextIn(json, "path"),
                           .build_id = json.value("build_id", "")};
    profile_->mappings.push_back({.module = 0,
                                  .base = AddressIn(json.at("base")),
                                  .begin = AddressIn(json.at("begin")),
                                  .end = AddressIn(json.at("end")),
                                  .offset = NumberOr0(json, "offset")});
    profile_->mappings.back().module = modules_.Add(module);
  }

  void OnSite(const Json& json) {
    HeapSite site = {.figures = KindsIn(json), .addresses = {}, .stack = {}};
    for (const Json& frame : json.at("stack").get_ref<const Json::array_t&>()) {
      site.addresses.push_back(AddressIn(frame));
      site.stack.push_back(FrameOf(*profile_, site.addresses.back()));
    }
    GetVariances(json, profile_->mean_bytes, site.figures);
    sums_ += site.figures;
    profile_->sites.push_back(std::move(site));
  }

  void OnEnd(const Json& json) {
    HeapProfile& profile = *profile_;
    const std::uint64_t sites = NumberIn(json, "sites");
    profile.lost_samples = NumberIn(json, "lost_samples");
    profile.totals = KindsIn(json);
    if (json.contains("counted")) {
      const Json& counted = json.at("counted");
      profile.counted = {NumberIn(counted, "blocks"),
                         NumberIn(counted, "bytes")};
    }
    if (json.contains("resident_bytes")) {
      profile.resident_bytes = NumberIn(json, "resident_bytes");
    }
    profile.has_end = true;
    profile.whole =
        sites == profile.sites.size() && profile.unreadable_lines == 0;
    Close();
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
