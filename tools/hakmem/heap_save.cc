// The heap profile as the lines that a process itself would write
// (docs/heap_profile.md), with the time.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::ordered_json;

// Bytes that are no UTF-8 are replaced.
void AddLine(const Json& json, std::string& text) {
  absl::StrAppend(
      &text, json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

std::string Hex(std::uint64_t number) {
  return absl::StrCat("0x", absl::Hex(number));
}

void AddKinds(const HeapKinds& kinds, Json& json) {
  for (const HeapKind kind :
       {HeapKind::kLive, HeapKind::kPeak, HeapKind::kAllocated}) {
    const HeapFigures& figures = kinds.Of(kind);
    json[HeapKindName(kind)] = {{"samples", figures.samples},
                                {"blocks", figures.blocks},
                                {"bytes", figures.bytes}};
  }
}

// As SetVariances reads them.
void AddVariances(const HeapKinds& kinds, std::uint64_t mean_bytes,
                  Json& json) {
  const double mean = static_cast<double>(mean_bytes);
  const double unit = mean * mean / 65536;
  for (const HeapKind kind :
       {HeapKind::kLive, HeapKind::kPeak, HeapKind::kAllocated}) {
    json["variances"][HeapKindName(kind)] = static_cast<std::uint64_t>(
        std::llround(kinds.Of(kind).variance / unit));
  }
}

void AddProfile(const HeapReport& report, const HeapProfile& profile,
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
  AddLine(start, text);
  for (const HeapMapping& mapping : profile.mappings) {
    const Module& module = report.symbols.modules()[mapping.module];
    AddLine({{"kind", "module"},
             {"path", module.path},
             {"build_id", module.build_id},
             {"base", Hex(mapping.base)},
             {"begin", Hex(mapping.begin)},
             {"end", Hex(mapping.end)},
             {"offset", mapping.offset}},
            text);
  }
  for (const HeapSite& site : profile.sites) {
    Json line = {{"kind", "site"}};
    AddKinds(site.figures, line);
    AddVariances(site.figures, profile.mean_bytes, line);
    line["stack"] = Json::array();
    for (const std::uint64_t address : site.addresses) {
      line["stack"].push_back(Hex(address));
    }
    AddLine(line, text);
  }
  Json end = {{"kind", "end"},
              {"sites", profile.sites.size()},
              {"lost_samples", profile.lost_samples}};
  AddKinds(profile.totals, end);
  if (profile.counted) {
    end["counted"] = {{"blocks", profile.counted->blocks},
                      {"bytes", profile.counted->bytes}};
  }
  if (profile.resident_bytes) end["resident_bytes"] = *profile.resident_bytes;
  AddLine(end, text);
}

}  // namespace

std::string HeapAsLines(const HeapReport& report) {
  std::string text;
  for (const HeapProfile& profile : report.profiles.last) {
    AddProfile(report, profile, text);
  }
  return text;
}

}  // namespace hakmem::tools
