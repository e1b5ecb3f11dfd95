// The report of a call trace as JSON, and the trace for Chrome's viewer.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/trace_report.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::ordered_json;

// Bytes that are no UTF-8 are replaced.
std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

class JsonReport {
 public:
  explicit JsonReport(const TraceReport& report)
      : report_(report), facts_(report.blocks.facts()) {}

  Json Make() {
    Json json = {{"schema", "hakmem-trace-report"}, {"version", 1}};
    Head(json);
    json["totals"] = Tally(report_.analysis.total());
    json["totals"]["reallocs_in_place"] =
        report_.Scaled(report_.analysis.reallocs_in_place());
    json["totals"]["reallocs_moved"] =
        report_.Scaled(report_.analysis.reallocs_moved());
    json["timeline"] = Timeline();
    json["routes"] = Routes();
    json["classes"] = Classes();
    json["threads"] = Threads();
    json["calls"] = Calls();
    if (facts_.has_stacks) json["sites"] = Sites();
    json["lifetimes"] = Lifetimes();
    json["failures"] = Failures();
    json["remarks"] = TraceRemarks(report_);
    return json;
  }

 private:
  void Head(Json& json) {
    const TraceAnalysis& analysis = report_.analysis;
    json["file"] = report_.path;
    json["program"] = facts_.program;
    json["pid"] = facts_.process_id;
    json["hakmem"] = facts_.version;
    json["variant"] = facts_.variant;
    json["start_unix_ns"] = facts_.wall_clock_ns;
    json["duration_ns"] = analysis.duration_ns();
    json["sample"] = facts_.sample;
    json["stacks"] = facts_.has_stacks;
    json["events"] = analysis.events();
    json["dropped"] = report_.dropped();
    json["complete"] = report_.blocks.end.has_value();
    if (report_.blocks.end.has_value()) {
      json["signal"] = report_.blocks.end->signal;
    }
    json["unknown_frees"] = analysis.unknown_frees();
    json["lost_frees"] = analysis.lost_frees();
    const TraceDamage& damage = report_.blocks.damage;
    json["damage"] = {{"bytes", damage.bytes()},
                      {"places", damage.places()},
                      {"notes", damage.notes()}};
  }

  Json Tally(const BlockTally& tally) const {
    return {
        {"allocations", report_.Scaled(tally.allocations)},
        {"allocated_bytes", report_.Scaled(tally.allocated_bytes)},
        {"block_bytes", report_.Scaled(tally.block_bytes)},
        {"live_blocks", report_.Scaled(tally.live_blocks)},
        {"live_bytes", report_.Scaled(tally.live_bytes)},
        {"peak_live_bytes", report_.Scaled(tally.peak_live_bytes)},
        {"freed", report_.Scaled(tally.freed)},
        {"freed_by_others", report_.Scaled(tally.freed_by_others)},
        {"mean_lifetime_ns", tally.mean_lifetime_ns()},
    };
  }

  Json Timeline() const {
    const TraceTimeline& timeline = report_.analysis.timeline();
    Json intervals = Json::array();
    for (const TraceInterval& interval : timeline.intervals()) {
      Json live = Json::object();
      for (std::size_t i = 0; i < kTraceRoutes; ++i) {
        if (interval.live_bytes[i] == 0) continue;
        live[TraceRouteName(static_cast<TraceRoute>(i))] =
            report_.Scaled(interval.live_bytes[i]);
      }
      intervals.push_back(
          {{"allocations", report_.Scaled(interval.allocations)},
           {"allocated_bytes", report_.Scaled(interval.allocated_bytes)},
           {"frees", report_.Scaled(interval.frees)},
           {"failures", interval.failures},
           {"live_blocks", report_.Scaled(interval.live_blocks)},
           {"live_bytes", report_.Scaled(interval.all_live_bytes())},
           {"peak_live_bytes", report_.Scaled(interval.peak_live_bytes)},
           {"live_bytes_by_route", live}});
    }
    return {{"interval_ns", timeline.interval_ns()}, {"intervals", intervals}};
  }

  Json Routes() const {
    Json routes = Json::object();
    for (std::size_t i = 0; i < kTraceRoutes; ++i) {
      const BlockTally& tally = report_.analysis.routes()[i];
      if (tally.allocations == 0) continue;
      routes[TraceRouteName(static_cast<TraceRoute>(i))] = Tally(tally);
    }
    return routes;
  }

  Json Classes() const {
    Json classes = Json::array();
    for (const auto& [key, tally] : report_.analysis.classes()) {
      Json json = Tally(tally);
      json["route"] = TraceRouteName(key.first);
      if (key.second != 0) json["class"] = key.second;
      classes.push_back(std::move(json));
    }
    return classes;
  }

  Json Threads() const {
    Json threads = Json::array();
    for (const auto& [number, tally] : report_.analysis.threads()) {
      Json json = Tally(tally.blocks);
      json["number"] = number;
      json["name"] = report_.ThreadName(number);
      json["frees"] = report_.Scaled(tally.frees);
      json["frees_of_others"] = report_.Scaled(tally.frees_of_others);
      json["first_ns"] = tally.first_ns;
      json["last_ns"] = tally.last_ns;
      const auto known = report_.blocks.threads.find(number);
      if (known != report_.blocks.threads.end()) {
        // Of the program itself, not scaled.
        json["tid"] = known->second.thread_id;
        json["calls"] = known->second.calls;
        json["dropped"] = known->second.dropped;
      }
      threads.push_back(std::move(json));
    }
    return threads;
  }

  Json Calls() const {
    Json calls = Json::object();
    for (const auto& [call, tally] : report_.analysis.calls()) {
      calls[NameOf(facts_.calls, call)] = Tally(tally);
    }
    return calls;
  }

  Json Stack(StackId stack) const {
    Json frames = Json::array();
    for (const std::uint64_t address : report_.stacks.At(stack)) {
      Json frame = {{"address", absl::StrFormat("%#x", address)}};
      const TraceModule* const module = report_.symbols.ModuleAt(address);
      if (module != nullptr) {
        frame["module"] = module->path;
        frame["offset"] = absl::StrFormat("%#x", address - module->base);
      }
      frame["text"] = report_.symbols.Texts(address);
      frames.push_back(std::move(frame));
    }
    return frames;
  }

  Json Sites() const {
    Json sites = Json::array();
    for (const TraceSite& site : SitesByBytes(report_.analysis)) {
      Json json = Tally(site.blocks);
      json["call"] = NameOf(facts_.calls, site.call);
      json["stack"] = Stack(site.stack);
      sites.push_back(std::move(json));
    }
    return sites;
  }

  Json Lifetimes() const {
    Json lifetimes = Json::array();
    const auto& places = report_.analysis.lifetimes();
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == 0) continue;
      lifetimes.push_back({{"from_ns", std::uint64_t{1} << i},
                           {"blocks", report_.Scaled(places[i])}});
    }
    return lifetimes;
  }

  Json Failures() const {
    Json failures = Json::array();
    for (const auto& [key, tally] : report_.analysis.failures()) {
      const auto& [call, reason, detail, disposition] = key;
      Json json = {{"call", NameOf(facts_.calls, call)},
                   {"reason", NameOf(facts_.reasons, reason)},
                   {"detail", NameOf(facts_.details, detail)},
                   {"disposition", NameOf(facts_.dispositions, disposition)},
                   {"count", tally.count},
                   {"smallest", tally.smallest},
                   {"largest", tally.largest},
                   {"first_ns", tally.first_ns},
                   {"last_ns", tally.last_ns}};
      if (tally.stack != kNoStack) json["stack"] = Stack(tally.stack);
      failures.push_back(std::move(json));
    }
    return failures;
  }

  const TraceReport& report_;
  const TraceFacts& facts_;
};

// Chrome counts in microseconds.
double Microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

class ChromeTrace {
 public:
  explicit ChromeTrace(const TraceReport& report)
      : report_(report), facts_(report.blocks.facts()) {}

  Json Make() {
    Name("process_name", 0,
         absl::StrCat(facts_.program, " (", facts_.process_id, ")"));
    Threads();
    Counters();
    Failures();
    return {{"traceEvents", std::move(events_)},
            {"displayTimeUnit", "ms"},
            {"otherData",
             {{"hakmem", facts_.version},
              {"sample", facts_.sample},
              {"events", report_.analysis.events()},
              {"dropped", report_.dropped()}}}};
  }

 private:
  Json Event(const char* phase, std::string name, std::uint64_t time_ns) const {
    return {{"ph", phase},
            {"name", std::move(name)},
            {"pid", facts_.process_id},
            {"ts", Microseconds(time_ns)}};
  }

  // The shared stream of threads has the number 0, and Chrome its own rows.
  std::uint64_t ThreadId(std::uint64_t number) const {
    const auto known = report_.blocks.threads.find(number);
    return known == report_.blocks.threads.end() ? number
                                                 : known->second.thread_id;
  }

  void Name(const char* what, std::uint64_t thread_id, std::string name) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", facts_.process_id},
                       {"tid", thread_id},
                       {"args", {{"name", std::move(name)}}}});
  }

  void Threads() {
    for (const auto& [number, tally] : report_.analysis.threads()) {
      Name("thread_name", ThreadId(number), report_.ThreadName(number));
      Json event = Event("X", "allocating", tally.first_ns);
      event["tid"] = ThreadId(number);
      event["dur"] = Microseconds(tally.last_ns - tally.first_ns);
      event["args"] = {
          {"allocations", report_.Scaled(tally.blocks.allocations)},
          {"allocated bytes", report_.Scaled(tally.blocks.allocated_bytes)},
          {"frees", report_.Scaled(tally.frees)},
          {"frees of other threads' blocks",
           report_.Scaled(tally.frees_of_others)}};
      events_.push_back(std::move(event));
    }
  }

  void Counters() {
    const TraceTimeline& timeline = report_.analysis.timeline();
    const std::uint64_t ns = timeline.interval_ns();
    std::uint64_t time_ns = 0;
    for (const TraceInterval& interval : timeline.intervals()) {
      Json live = Event("C", "live bytes", time_ns + ns);
      for (std::size_t i = 0; i < kTraceRoutes; ++i) {
        if (report_.analysis.routes()[i].allocations == 0) continue;
        live["args"][TraceRouteName(static_cast<TraceRoute>(i))] =
            report_.Scaled(interval.live_bytes[i]);
      }
      events_.push_back(std::move(live));
      Json rate = Event("C", "calls a second", time_ns);
      rate["args"] = {{"allocations", PerSecond(interval.allocations, ns)},
                      {"frees", PerSecond(interval.frees, ns)}};
      events_.push_back(std::move(rate));
      Json bytes = Event("C", "allocated bytes a second", time_ns);
      bytes["args"] = {{"bytes", PerSecond(interval.allocated_bytes, ns)}};
      events_.push_back(std::move(bytes));
      time_ns += ns;
    }
  }

  double PerSecond(std::uint64_t number, std::uint64_t ns) const {
    return static_cast<double>(report_.Scaled(number)) * 1e9 /
           static_cast<double>(ns);
  }

  void Failures() {
    for (const auto& moment : report_.analysis.failure_moments()) {
      Json event = Event("i", report_.CauseName(moment.key), moment.time_ns);
      event["s"] = "t";
      event["tid"] = ThreadId(moment.thread);
      event["args"] = {{"call", NameOf(facts_.calls, std::get<0>(moment.key))},
                       {"size", moment.size},
                       {"disposition",
                        NameOf(facts_.dispositions, std::get<3>(moment.key))}};
      events_.push_back(std::move(event));
    }
  }

  const TraceReport& report_;
  const TraceFacts& facts_;
  Json events_ = Json::array();
};

}  // namespace

std::string TraceAsJson(const TraceReport& report) {
  return Dump(JsonReport(report).Make(), 2);
}

std::string TraceAsChromeJson(const TraceReport& report) {
  return Dump(ChromeTrace(report).Make(), -1);
}

}  // namespace hakmem::tools
