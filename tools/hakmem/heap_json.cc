// The report of heap profiles as JSON, and the lines that a process itself
// would write (docs/heap_profile.md).

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
        ErrorBytes(StandardError(profile.totals.Of(kind)));
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
std::string Dump(const Json& json, int indent = 1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
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

Json Growth(const HeapGrowth& growth) {
  return {{"growth_bytes", growth.bytes()},
          {"standard_error_bytes", ErrorBytes(growth.StandardErrorBytes())},
          {"sure", growth.is_sure()},
          {"before", Figures(growth.before)},
          {"after", Figures(growth.after)}};
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
               {"sites", Json::array()},
               {"functions", Json::array()}};
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  for (const HeapGrowth& growth : growths) {
    Json site = Growth(growth);
    site["stack"] = Stack(diff.symbols, *growth.site);
    json["sites"].push_back(std::move(site));
  }
  for (const HeapGrowth& growth : GrowthByFunction(diff, growths)) {
    Json function = {{"name", growth.function}, {"sites", growth.sites}};
    function.update(Growth(growth));
    json["functions"].push_back(std::move(function));
  }
  json["remarks"] = HeapDiffRemarks(diff);
  json["notes"] = diff.symbols.notes();
  return Dump(json);
}

namespace {

std::string Hex(std::uint64_t number) {
  return absl::StrCat("0x", absl::Hex(number));
}

// As SetVariances reads them.
void AddVariances(const HeapKinds& kinds, std::uint64_t mean_bytes,
                  Json& json) {
  const double mean = static_cast<double>(mean_bytes);
  const double unit = mean * mean / 65536;
  for (const HeapKind kind : kKinds) {
    json["variances"][HeapKindName(kind)] = static_cast<std::uint64_t>(
        std::llround(kinds.Of(kind).variance / unit));
  }
}

void AddProfile(const HeapProfile& profile, const HeapModules& modules,
                std::string& text) {
  Json start = {{"schema", "hakmem-heap-profile"},
                {"version", 1},
                {"kind", "start"},
                {"pid", profile.pid},
                {"program", profile.program},
                {"hakmem", profile.version},
                {"variant", profile.variant},
                {"mean_bytes", profile.mean_bytes}};
  if (profile.time_ns != 0) start["time_ns"] = profile.time_ns;
  text += Dump(start, -1);
  for (const HeapMapping& mapping : profile.mappings) {
    const Module& module = modules.list()[mapping.module];
    text += Dump({{"kind", "module"},
                  {"path", module.path},
                  {"build_id", module.build_id},
                  {"base", Hex(mapping.base)},
                  {"begin", Hex(mapping.begin)},
                  {"end", Hex(mapping.end)},
                  {"offset", mapping.offset}},
                 -1);
  }
  for (const HeapSite& site : profile.sites) {
    Json line = {{"kind", "site"}};
    line.update(Kinds(site.figures));
    AddVariances(site.figures, profile.mean_bytes, line);
    line["stack"] = Json::array();
    for (const std::uint64_t address : site.addresses) {
      line["stack"].push_back(Hex(address));
    }
    text += Dump(line, -1);
  }
  Json end = {{"kind", "end"},
              {"sites", profile.sites.size()},
              {"lost_samples", profile.lost_samples}};
  end.update(Kinds(profile.totals));
  if (profile.counted) {
    end["counted"] = {{"blocks", profile.counted->blocks},
                      {"bytes", profile.counted->bytes}};
  }
  if (profile.resident_bytes) end["resident_bytes"] = *profile.resident_bytes;
  text += Dump(end, -1);
}

}  // namespace

std::string HeapAsLines(const HeapProfiles& profiles,
                        const HeapModules& modules) {
  std::string text;
  for (const HeapProfile& profile : profiles.last) {
    AddProfile(profile, modules, text);
  }
  return text;
}

}  // namespace hakmem::tools
