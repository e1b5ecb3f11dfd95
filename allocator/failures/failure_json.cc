#include "allocator/failures/failure_json.h"

#include <cstddef>

#include "allocator/base/raw_print.h"
#include "allocator/config/version.h"
#include "allocator/options/option_parser.h"
#include "allocator/stacks/modules.h"

namespace hakmem {
namespace {

// Room that frames, modules and limits leave for the end of the line.
constexpr std::size_t kEndBytes = 512;

// "2026-11-20T16:40:01.123456Z", in the proleptic Gregorian calendar. The days
// become a date as in H. Hinnant, "chrono-Compatible Low-Level Date
// Algorithms": the year is taken to begin in March.
void Time(std::uint64_t time_ns, JsonText& line) {
  const std::uint64_t microseconds = time_ns / 1000;
  const std::uint64_t seconds = microseconds / 1'000'000;
  const std::uint64_t days = seconds / 86'400 + 719'468;
  const std::uint64_t era = days / 146'097;
  const std::uint64_t day_of_era = days % 146'097;
  const std::uint64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 -
       day_of_era / 146'096) /
      365;
  const std::uint64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::uint64_t shifted_month = (5 * day_of_year + 2) / 153;
  const std::uint64_t day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
  const std::uint64_t month =
      shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const std::uint64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  const auto padded = [&line](std::uint64_t value, std::uint64_t first) {
    for (std::uint64_t unit = first; unit > 1 && value < unit; unit /= 10) {
      line.Raw("0");
    }
    line.Number(value);
  };
  line.Raw("\"");
  padded(year, 1000);
  line.Raw("-");
  padded(month, 10);
  line.Raw("-");
  padded(day, 10);
  line.Raw("T");
  padded(seconds / 3600 % 24, 10);
  line.Raw(":");
  padded(seconds / 60 % 60, 10);
  line.Raw(":");
  padded(seconds % 60, 10);
  line.Raw(".");
  padded(microseconds % 1'000'000, 100'000);
  line.Raw("Z\"");
}

void Begin(const char* event, JsonText& line) {
  line.Raw(R"({"schema":"hakmem-failure","version":1,"event":")");
  line.Raw(event).Raw("\"");
}

void Moment(const TraceMoment& moment, JsonText& line) {
  line.Key("time");
  Time(moment.time_ns, line);
  line.Key("monotonic_ns").Number(moment.monotonic_ns);
  line.Key("pid").SignedNumber(moment.process_id);
}

void Source(const TraceSource& source, JsonText& line) {
  line.Key("program").String(source.program);
  line.Key("hakmem").String(kVersion);
  line.Key("variant").String(source.variant);
}

void Memory(const MemoryFigures& memory, std::uint64_t live_bytes,
            JsonText& line) {
  line.Key("memory").Raw("{\"granted\":").Number(memory.granted);
  if (live_bytes != kLiveNotCounted) line.Key("live").Number(live_bytes);
  line.Key("cached").Number(memory.cached);
  line.Key("mapped").Number(memory.mapped);
  line.Key("peak_mapped").Number(memory.peak_mapped);
  line.Key("metadata").Number(memory.metadata);
  line.Key("largest_free").Number(memory.largest_free).Raw("}");
}

void Request(const FailureEvent& event, JsonText& line) {
  line.Key("call").String(CallName(event.call));
  line.Key("size").Number(event.size_bytes);
  line.Key("alignment").Number(event.alignment_bytes);
  if (event.count != 0) line.Key("count").Number(event.count);
  line.Key("route").String(RouteName(event.route));
  if (event.class_bytes != 0) line.Key("class").Number(event.class_bytes);
}

void Outcome(const FailureEvent& event, JsonText& line) {
  line.Key("reason").String(FailureReasonName(event.reason));
  line.Key("detail").String(FailureDetailName(event.detail));
  line.Key("disposition").String(DispositionName(event.disposition));
  line.Key("attempts").Number(event.attempts);
  if (event.error_number != 0) {
    line.Key("refused").Raw("{\"call\":");
    line.String(VmCallName(event.refused_call));
    line.Key("bytes").Number(event.refused_bytes);
    line.Key("errno").SignedNumber(event.error_number);
    const char* const name = ErrorName(event.error_number);
    if (name[0] != '\0') line.Key("error").String(name);
    line.Raw("}");
  }
}

void Limit(const FailureEvent& event, JsonText& line) {
  if (event.limit_name[0] == '\0') return;
  line.Key("limit").Raw("{\"name\":").String(event.limit_name);
  line.Key("value").Number(event.limit_value);
  // A bound on single requests is not used up.
  if (event.reason != FailureReason::kThreshold) {
    line.Key("use").Number(event.limit_use);
  }
  line.Key("needed").Number(event.limit_needed);
  if (event.limit_source[0] != '\0') {
    line.Key("source").String(event.limit_source);
  }
  line.Raw("}");
}

void Limits(const LimitReport& report, JsonText& line) {
  line.Key("limits").Raw("[");
  for (unsigned i = 0; i < report.count; ++i) {
    const LimitReading& reading = report.readings[i];
    line.Raw(i == 0 ? "{\"name\":" : ",{\"name\":").String(reading.name);
    line.Key("value").Number(reading.value);
    line.Key("use").Number(reading.use);
    line.Key("source").String(reading.source).Raw("}");
  }
  line.Raw("]");
}

// The modules that an event's frames lie in.
class Modules {
 public:
  explicit Modules(const FailureEvent& event) : event_(event) {}

  // Writes the list of modules, each of which is found once.
  void Print(JsonText& line) {
    line.Key("modules").Raw("[");
    for (unsigned i = 0; i < event_.frame_count; ++i) {
      places_[i] = Find(static_cast<std::uintptr_t>(event_.frames[i]), line);
    }
    line.Raw("]");
  }

  void PrintStack(JsonText& line) const {
    line.Key("stack").Raw("[");
    for (unsigned i = 0; i < event_.frame_count; ++i) {
      const std::size_t before = line.length();
      if (i != 0) line.Raw(",");
      if (places_[i] == kNone) {
        line.Raw("{\"address\":").Hex(event_.frames[i]);
      } else {
        const Place& place = found_[places_[i]];
        line.Raw("{\"module\":").Number(places_[i]);
        line.Key("offset").Hex(event_.frames[i] - place.base);
      }
      line.Raw("}");
      if (line.length() + 2 > kFailureLineBytes || line.overflowed()) {
        line.Rewind(before);
        break;
      }
    }
    line.Raw("]");
  }

 private:
  struct Place {
    std::uintptr_t base;
    std::uintptr_t begin;
    std::uintptr_t end;
  };
  static constexpr std::uint8_t kNone = 0xff;

  std::uint8_t Find(std::uintptr_t address, JsonText& line) {
    for (std::uint8_t i = 0; i < count_; ++i) {
      if (address >= found_[i].begin && address < found_[i].end) return i;
    }
    ModuleOf module;
    if (!FindModule(address, module)) return kNone;
    const std::size_t before = line.length();
    line.Raw(count_ == 0 ? "{\"path\":" : ",{\"path\":").String(module.path);
    if (module.build_id[0] != '\0') {
      line.Key("build_id").String(module.build_id);
    }
    line.Raw("}");
    // Frames are short; their room comes first.
    if (line.overflowed() ||
        line.length() + kFrameRoomBytes > kFailureLineBytes - kEndBytes) {
      line.Rewind(before);
      return kNone;
    }
    found_[count_] = {module.base, module.begin, module.end};
    return count_++;
  }

  static constexpr std::size_t kFrameRoomBytes =
      std::size_t{kMaxFailureFrames} * 64;

  const FailureEvent& event_;
  Place found_[kMaxFailureFrames];
  std::uint8_t places_[kMaxFailureFrames];
  std::uint8_t count_ = 0;
};

}  // namespace

void StartLine(const TraceSource& source, const TraceMoment& moment,
               const ParsedOptions& options, JsonText& line) {
  Begin("start", line);
  Moment(moment, line);
  Source(source, line);
  line.Key("options").Raw("{");
  const char* separator = "";
  for (std::size_t i = 0; i < std::size(kOptionTable); ++i) {
    if (options.origins[i] != OptionOrigin::kEnvironment) continue;
    RawPrinter value;
    PrintOptionValue(kOptionTable[i], options.values, value);
    line.Raw(separator).String(kOptionTable[i].name).Raw(":");
    line.String(value.text());
    separator = ",";
  }
  line.Raw("}}\n");
}

void FailureLine(const TraceSource& source, const FailureEvent& event,
                 const LimitReport* limits, std::uint64_t dropped,
                 JsonText& line) {
  Begin("failure", line);
  line.Key("sequence").Number(event.sequence);
  Moment({event.time_ns, event.monotonic_ns, event.process_id}, line);
  line.Key("tid").SignedNumber(event.thread_id);
  line.Key("thread").String(event.thread_name);
  Source(source, line);
  Request(event, line);
  Outcome(event, line);
  Limit(event, line);
  if (limits != nullptr && limits->count != 0) Limits(*limits, line);
  Memory(event.memory, event.live_bytes, line);
  if (dropped != 0) line.Key("dropped").Number(dropped);
  Modules modules(event);
  modules.Print(line);
  modules.PrintStack(line);
  line.Raw("}\n");
}

void MemoryLine(const TraceMoment& moment, const MemoryFigures& memory,
                JsonText& line) {
  Begin("memory", line);
  Moment(moment, line);
  Memory(memory, kLiveNotCounted, line);
  line.Raw("}\n");
}

void EndLine(const TraceMoment& moment, std::uint64_t failures,
             std::uint64_t dropped, const MemoryFigures& memory,
             JsonText& line) {
  Begin("end", line);
  Moment(moment, line);
  line.Key("failures").Number(failures);
  line.Key("dropped").Number(dropped);
  Memory(memory, kLiveNotCounted, line);
  line.Raw("}\n");
}

}  // namespace hakmem
