// The report of heap profiles as JSON.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
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
  for (std::size_t i = 0; i < site.stack.size(); ++i) {
    const Frame& frame = site.stack[i];
    Json json = {{"address", absl::StrFormat("%#x", site.addresses[i])}};
    if (frame.module != Frame::kNoModule) {
      json["module"] = symbols.modules()[frame.module].path;
      json["offset"] = absl::StrFormat("%#x", frame.offset);
    }
    Json functions = Json::array();
    for (const SourceLine& line : symbols.Lines(frame)) {
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
          ErrorBytes(StandardError({&site, 1}, kind));
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

}  // namespace

std::string HeapAsJson(const HeapReport& report) {
  Json json = {{"schema", "hakmem-heap-report"},
               {"version", 1},
               {"file", report.path},
               {"by", HeapKindName(report.by)},
               {"profiles_in_file", report.profiles.in_file},
               {"profiles", Json::array()}};
  for (const HeapProfile& profile : report.profiles.last) {
    json["profiles"].push_back(Profile(report, profile));
  }
  json["notes"] = report.symbols.notes();
  // Bytes that are no UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hakmem::tools
