// The report of heap profiles as JSON.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr HeapKind kKinds[] = {HeapKind::kLive, HeapKind::kPeak,
                               HeapKind::kAllocated};

Json Figures(const HeapFigures& figures) {
  return {{"samples", figures.samples},
          {"blocks", figures.blocks},
          {"bytes", figures.bytes}};
}

Json Kinds(const HeapKinds& kinds) {
  Json json;
  for (const HeapKind kind : kKinds) {
    json[HeapKindName(kind)] = Figures(kinds.Of(kind));
  }
  return json;
}

Json ErrorBytes(double error_bytes) {
  return static_cast<std::uint64_t>(error_bytes);
}

Json Stack(const HeapSymbols& symbols, const HeapSite& site) {
  Json frames = Json::array();
  for (const ShownFrame& shown : symbols.Shown(site.stack)) {
    const Frame& frame = site.stack[shown.at];
    Json json = {{"address", absl::StrFormat("%#x", site.addresses[shown.at])}};
    if (frame.module != Frame::kNoModule) {
      json["module"] = symbols.modules()[frame.module].path;
      json["offset"] = absl::StrFormat("%#x", frame.offset);
    }
    Json functions = Json::array();
    for (const SourceLine& line : shown.lines) {
      functions.push_back({{"name", line.function}, {"place", line.place}});
    }
    json["functions"] = std::move(functions);
    frames.push_back(std::move(json));
  }
  return frames;
}

Json Profile(const HeapReport& report, const HeapProfile& profile) {
  Json json = {
      {"program", profile.program},          {"pid", profile.pid},
      {"hakmem", profile.version},           {"variant", profile.variant},
      {"mean_bytes", profile.mean_bytes},    {"complete", profile.whole},
      {"lost_samples", profile.lost_samples}};
  if (profile.counted) {
    json["counted"] = {{"blocks", profile.counted->blocks},
                       {"bytes", profile.counted->bytes}};
  }
  if (profile.resident_bytes) json["resident_bytes"] = *profile.resident_bytes;
  json.update(Kinds(profile.totals));
  for (const HeapKind kind : kKinds) {
    json[HeapKindName(kind)]["standard_error_bytes"] =
        ErrorBytes(StandardError(profile, kind));
  }
  json["sites"] = Json::array();
  for (const HeapSite* const site : SitesBy(profile, report.by)) {
    Json site_json = Kinds(site->figures);
    for (const HeapKind kind : kKinds) {
      site_json[HeapKindName(kind)]["standard_error_bytes"] =
          ErrorBytes(StandardError(site->figures.Of(kind)));
    }
    site_json["stack"] = Stack(report.symbols, *site);
    json["sites"].push_back(std::move(site_json));
  }
  json["functions"] = Json::array();
  for (const HeapFunction& function :
       FunctionsBy(profile, report.symbols, report.by)) {
    json["functions"].push_back({{"name", function.name},
                                 {"self", Kinds(function.self)},
                                 {"cumulative", Kinds(function.cumulative)}});
  }
  json["remarks"] = HeapRemarks(profile);
  return json;
}

// Bytes that are no UTF-8 are replaced.
std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json Side(const std::string& path, const HeapProfiles& profiles,
          const HeapFigures& figures) {
  Json json = {{"file", path}};
  json.update(Figures(figures));
  json["processes"] = Json::array();
  for (const HeapProfile& profile : profiles.last) {
    json["processes"].push_back({{"program", profile.program},
                                 {"pid", profile.pid},
                                 {"complete", profile.whole}});
  }
  return json;
}

}  // namespace

std::string HeapAsJson(const HeapReport& report) {
  Json json = {{"schema", "hakmem-heap-report"},
               {"version", 1},
               {"files", report.files},
               {"by", HeapKindName(report.by)},
               {"profiles_in_files", report.profiles.in_file},
               {"profiles", Json::array()}};
  for (const HeapProfile& profile : report.profiles.last) {
    json["profiles"].push_back(Profile(report, profile));
  }
  json["notes"] = report.symbols.notes();
  return Dump(json);
}

std::string HeapDiffAsJson(const HeapDiff& diff) {
  const HeapGrowth total = TotalGrowth(diff);
  Json json = {{"schema", "hakmem-heap-diff"},
               {"version", 1},
               {"by", HeapKindName(diff.by)},
               {"growth_bytes", total.bytes()},
               {"standard_error_bytes", ErrorBytes(total.StandardErrorBytes())},
               {"seconds", SecondsBetween(diff)},
               {"before", Side(diff.before_path, diff.before, total.before)},
               {"after", Side(diff.after_path, diff.after, total.after)},
               {"sites", Json::array()}};
  for (const HeapGrowth& growth : GrowthBySite(diff)) {
    json["sites"].push_back(
        {{"growth_bytes", growth.bytes()},
         {"standard_error_bytes", ErrorBytes(growth.StandardErrorBytes())},
         {"sure", growth.is_sure()},
         {"before", Figures(growth.before)},
         {"after", Figures(growth.after)},
         {"stack", Stack(diff.symbols, *growth.site)}});
  }
  json["remarks"] = HeapDiffRemarks(diff);
  json["notes"] = diff.symbols.notes();
  return Dump(json);
}

}  // namespace hakmem::tools
