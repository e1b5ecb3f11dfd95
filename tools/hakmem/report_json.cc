#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/report.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
void Put(Json& object, const char* name, const std::optional<T>& value) {
  if (value.has_value()) object[name] = *value;
}

void PutText(Json& object, const char* name, const std::string& value) {
  if (!value.empty()) object[name] = value;
}

Json LimitJson(const Limit& limit) {
  Json json = {{"name", limit.name}};
  Put(json, "value", limit.value);
  Put(json, "use", limit.use);
  Put(json, "needed", limit.needed);
  PutText(json, "source", limit.source);
  return json;
}

Json EvidenceJson(const Record& failure) {
  Json json = {{"time", failure.time},
               {"pid", failure.pid},
               {"tid", failure.tid},
               {"call", failure.call},
               {"size", failure.size}};
  PutText(json, "thread", failure.thread);
  Put(json, "count", failure.count);
  Put(json, "alignment", failure.alignment);
  PutText(json, "route", failure.route);
  json["attempts"] = failure.attempts;
  if (failure.refused) {
    json["refused"] = {{"call", failure.refused->call},
                       {"bytes", failure.refused->bytes},
                       {"error", failure.refused->error}};
  }
  if (failure.limit) json["limit"] = LimitJson(*failure.limit);
  for (const Limit& limit : failure.limits) {
    json["limits"].push_back(LimitJson(limit));
  }
  if (failure.memory) {
    Json memory = {{"granted", failure.memory->granted},
                   {"cached", failure.memory->cached},
                   {"mapped", failure.memory->mapped}};
    Put(memory, "peak_mapped", failure.memory->peak_mapped);
    Put(memory, "metadata", failure.memory->metadata);
    Put(memory, "largest_free", failure.memory->largest_free);
    Put(memory, "live", failure.memory->live);
    json["memory"] = memory;
  }
  return json;
}

Json SiteJson(const Report& report, const CallSite& site) {
  Json json = {{"call", site.call},
               {"events", site.events},
               {"smallest", site.smallest},
               {"largest", site.largest},
               {"stack", Json::array()}};
  for (const Frame& frame : site.stack) {
    Json entry = Json::object();
    const std::string number = absl::StrFormat("0x%x", frame.offset);
    if (frame.module < report.analysis.modules().size()) {
      const Module& module = report.analysis.modules()[frame.module];
      entry["module"] = module.path;
      PutText(entry, "build_id", module.build_id);
      entry["offset"] = number;
    } else {
      entry["address"] = number;
    }
    for (const SourceLine& line : report.symbols.Lines(frame)) {
      Json source = Json::object();
      PutText(source, "function", line.function);
      PutText(source, "place", line.place);
      entry["lines"].push_back(source);
    }
    json["stack"].push_back(entry);
  }
  return json;
}

Json AdviceJson(const Advice& advice) {
  Json json = {{"title", advice.title},
               {"sentence", advice.sentence},
               {"background", advice.background},
               {"remedies", Json::array()}};
  for (const FilledRemedy& remedy : advice.remedies) {
    Json entry = {{"where", remedy.where}, {"text", remedy.text}};
    PutText(entry, "command", remedy.command);
    json["remedies"].push_back(entry);
  }
  return json;
}

Json CauseJson(const Report& report, const Cause& cause) {
  Json json = {{"reason", cause.reason},
               {"detail", cause.detail},
               {"failed", cause.failed},
               {"rescued", cause.rescued},
               {"killed", cause.killed},
               {"dispositions", cause.dispositions},
               {"first", cause.first_time},
               {"last", cause.last_time},
               {"smallest", cause.smallest},
               {"largest", cause.largest},
               {"processes", cause.processes},
               {"advice", AdviceJson(AdviceFor(cause.example))},
               {"evidence", EvidenceJson(cause.example)},
               {"call_sites", Json::array()}};
  for (const CallSite* ranked : Analysis::RankedSites(cause)) {
    json["call_sites"].push_back(SiteJson(report, *ranked));
  }
  if (cause.sites_not_kept > 0) {
    json["events_of_other_call_sites"] = cause.sites_not_kept;
  }
  return json;
}

Json ProcessJson(const Report& report, const Process& process) {
  Json json = {{"input", report.inputs[process.source].name},
               {"pid", process.pid},
               {"program", process.program}};
  PutText(json, "variant", process.variant);
  PutText(json, "hakmem", process.version);
  json["ended"] = process.ended;
  json["failed"] = process.failed;
  json["rescued"] = process.rescued;
  json["dropped"] = process.dropped;
  json["first"] = process.first_time;
  json["last"] = process.last_time;
  json["peak_granted"] = process.peak_granted;
  json["peak_mapped"] = process.peak_mapped;
  for (const auto& [name, value] : process.options) {
    json["options"][name] = value;
  }
  return json;
}

Json InputJson(const Input& input) {
  Json json = {{"name", input.name}};
  PutText(json, "error", input.error);
  json["lines"] = input.lines;
  json["records"] = input.records;
  json["other_lines"] = input.other_lines;
  json["unreadable"] = input.problem_count;
  for (const Problem& problem : input.problems) {
    json["problems"].push_back(
        {{"line", problem.line}, {"what", problem.what}});
  }
  return json;
}

}  // namespace

std::string ReportAsJson(const Report& report) {
  Json json = {{"schema", "hakmem-explain"},
               {"version", 1},
               {"complete", IsComplete(report)},
               {"failed", report.analysis.failed()},
               {"rescued", report.analysis.rescued()},
               {"killed", report.analysis.killed()},
               {"dropped", report.analysis.dropped()},
               {"causes", Json::array()},
               {"processes", Json::array()},
               {"inputs", Json::array()},
               {"notes", report.symbols.notes()}};
  for (const std::size_t index : report.analysis.Ranked()) {
    json["causes"].push_back(
        CauseJson(report, report.analysis.causes()[index]));
  }
  for (const Process& process : report.analysis.processes()) {
    json["processes"].push_back(ProcessJson(report, process));
  }
  for (const Input& input : report.inputs) {
    json["inputs"].push_back(InputJson(input));
  }
  return json.dump(1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace hakmem::tools
