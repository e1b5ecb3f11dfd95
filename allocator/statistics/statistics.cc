#include "allocator/statistics/statistics.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/base/raw_print.h"

namespace hakmem {

namespace {

// The numbers that follow the routes, with their JSON keys and their words,
// which are in place: a pointer would have to be relocated at start.
struct Row {
  char key[28];
  char words[28];
  std::uint64_t Statistics::* value;
  bool is_bytes;
  // Falls, too: the others only rise.
  bool is_gauge = is_bytes;
};

constexpr Row kRows[] = {
    {"remote_frees", "freed by another thread", &Statistics::remote_frees,
     false},
    {"reallocs_in_place", "reallocs in place", &Statistics::reallocs_in_place,
     false},
    {"reallocs_moved", "reallocs moved", &Statistics::reallocs_moved, false},
    {"failures", "failed", &Statistics::failures, false},
    {"mapped_bytes", "mapped", &Statistics::mapped_bytes, true},
    {"peak_mapped_bytes", "mapped at most", &Statistics::peak_mapped_bytes,
     true},
    {"metadata_bytes", "metadata", &Statistics::metadata_bytes, true},
    {"granted_bytes", "in slabs and spans", &Statistics::granted_bytes, true},
    {"cached_bytes", "cached", &Statistics::cached_bytes, true},
    {"map_calls", "map calls", &Statistics::map_calls, false},
    {"unmap_calls", "unmap calls", &Statistics::unmap_calls, false},
    {"purge_calls", "purge calls", &Statistics::purge_calls, false},
    {"move_calls", "move calls", &Statistics::move_calls, false},
    {"heaps_created", "heaps created", &Statistics::heaps_created, false},
    {"heaps_abandoned", "heaps without a thread", &Statistics::heaps_abandoned,
     false, true},
    {"refills_from_partial_slabs", "refills, partial slabs",
     &Statistics::refills_from_partial_slabs, false},
    {"refills_from_empty_slabs", "refills, empty slabs",
     &Statistics::refills_from_empty_slabs, false},
    {"heaps_adopted", "heaps adopted", &Statistics::heaps_adopted, false},
    {"slabs_from_kept_units", "slabs, kept units",
     &Statistics::slabs_from_kept_units, false},
    {"slabs_from_clean_units", "slabs, clean units",
     &Statistics::slabs_from_clean_units, false},
    {"slabs_from_new_frames", "slabs, new frames",
     &Statistics::slabs_from_new_frames, false},
    {"misuses", "misuses", &Statistics::misuses, false},
    {"ace_lock_waits", "waits, ACE's lock", &Statistics::ace_lock_waits, false},
    {"heap_lock_waits", "waits, heaps' locks", &Statistics::heap_lock_waits,
     false},
    {"registry_lock_waits", "waits, registry", &Statistics::registry_lock_waits,
     false},
    {"magazine_pool_lock_waits", "waits, magazine pool",
     &Statistics::magazine_pool_lock_waits, false},
    {"exchange_lock_waits", "waits, exchange", &Statistics::exchange_lock_waits,
     false},
    {"ace_lock_wait_ns", "ns asleep, ACE's lock", &Statistics::ace_lock_wait_ns,
     false},
    {"heap_lock_wait_ns", "ns asleep, heaps' locks",
     &Statistics::heap_lock_wait_ns, false},
    {"registry_lock_wait_ns", "ns asleep, registry",
     &Statistics::registry_lock_wait_ns, false},
    {"magazine_pool_lock_wait_ns", "ns asleep, magazine pool",
     &Statistics::magazine_pool_lock_wait_ns, false},
    {"exchange_lock_wait_ns", "ns asleep, exchange",
     &Statistics::exchange_lock_wait_ns, false},
};

// Not of what the variant does not count. JSON has all keys in each variant.
bool IsCounted(const Row& row, const Statistics& statistics) {
  if (row.value != &Statistics::reallocs_in_place &&
      row.value != &Statistics::reallocs_moved) {
    return true;
  }
  const std::string_view variant = statistics.variant;
  return variant != "release" && variant != "hardened";
}

// The numbers of a class that JSON and XML have.
struct ClassField {
  char key[28];
  std::uint64_t (*value)(const ClassStatistics& entry);
};

constexpr ClassField kClassFields[] = {
    {"block_bytes",
     [](const ClassStatistics& entry) -> std::uint64_t {
       return entry.block_bytes;
     }},
    {"slabs",
     [](const ClassStatistics& entry) -> std::uint64_t { return entry.slabs; }},
    {"slab_bytes",
     [](const ClassStatistics& entry) { return entry.slab_bytes(); }},
    {"live_blocks",
     [](const ClassStatistics& entry) { return entry.live_blocks; }},
    {"live_bytes",
     [](const ClassStatistics& entry) { return entry.live_bytes(); }},
    {"free_blocks",
     [](const ClassStatistics& entry) { return entry.free_blocks; }},
    {"fragmentation_permille",
     [](const ClassStatistics& entry) {
       return entry.FragmentationPermille();
     }},
};

// Each byte of a name takes five at most.
constexpr std::size_t kMaxLabelsBytes = 5 * kMaxMetricsProgramBytes + 64;
// The most that a program's name may take of the line.
constexpr std::size_t kMaxProgramBytes = 360;

// Collects lines, and passes on as many as fit.
class Lines {
 public:
  explicit Lines(const LineSink& sink) : sink_(sink) {}
  ~Lines() { Pass(); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  RawPrinter& out() { return out_; }
  void End() {
    out_.Text("\n");
    if (out_.text().size() > RawPrinter::kCapacityBytes - kMaxLineBytes) Pass();
  }

 private:
  static constexpr std::size_t kMaxLineBytes = 512;

  void Pass() {
    sink_.write(sink_.context, out_.text());
    out_.Clear();
  }

  const LineSink& sink_;
  RawPrinter out_;
};

// As a string, of which the beginning stands when it is too long.
void PrintProgram(std::string_view program, JsonText& out) {
  char buffer[kMaxProgramBytes];
  JsonText name(buffer, sizeof(buffer));
  name.String(program);
  out.Raw(name.text());
  if (name.overflowed()) out.Raw("\"");
}

// `text`, and spaces up to `width`.
void PrintLeft(std::string_view text, std::size_t width, RawPrinter& out) {
  out.Text(text);
  for (std::size_t i = text.size(); i < width; ++i) out.Text(" ");
}

// `value` with spaces before it up to `width`.
void PrintRight(std::uint64_t value, std::size_t width, RawPrinter& out) {
  std::size_t digits = 1;
  for (std::uint64_t rest = value; rest >= 10; rest /= 10) ++digits;
  PrintLeft("", digits < width ? width - digits : 0, out);
  out.Decimal(value);
}

void PrintClassJson(const ClassStatistics& entry, JsonText& out) {
  out.Raw("{");
  for (const ClassField& field : kClassFields) {
    if (&field != kClassFields) out.Raw(",");
    out.Raw("\"").Raw(field.key).Raw("\":").Number(field.value(entry));
  }
  out.Raw("}");
}

constexpr const char* kClassColumns[] = {
    "class", "slabs", "live blocks", "live bytes", "free blocks", "unused"};
constexpr std::size_t kClassWidths[] = {7, 10, 14, 16, 14, 8};

void PrintClassesText(ClassList classes, Lines& lines) {
  if (classes.empty()) return;
  RawPrinter& out = lines.out();
  for (unsigned i = 0; i < std::size(kClassWidths); ++i) {
    const std::string_view title = kClassColumns[i];
    PrintLeft("", kClassWidths[i] - title.size(), out);
    out.Text(title);
  }
  lines.End();
  for (const ClassStatistics& entry : classes) {
    if (entry.slabs == 0) continue;
    const std::uint64_t permille = entry.FragmentationPermille();
    const std::uint64_t values[] = {entry.block_bytes, entry.slabs,
                                    entry.live_blocks, entry.live_bytes(),
                                    entry.free_blocks, permille / 10};
    for (unsigned i = 0; i < std::size(values); ++i) {
      // The last one has four characters more.
      const bool last = i + 1 == std::size(values);
      PrintRight(values[i], kClassWidths[i] - (last ? 4 : 0), out);
    }
    out.Text(".").Decimal(permille % 10).Text(" %");
    lines.End();
  }
}

}  // namespace

void PrintStatisticsJson(const Statistics& statistics, ClassList classes,
                         const StatisticsMoment& moment, JsonText& out) {
  out.Raw("{\"pid\":").SignedNumber(moment.process_id).Raw(",\"program\":");
  PrintProgram(moment.program, out);
  if (moment.unix_seconds != 0) out.Key("time").Number(moment.unix_seconds);
  if (moment.signal != 0) out.Key("signal").SignedNumber(moment.signal);
  out.Raw(",\"variant\":\"").Raw(statistics.variant);
  out.Raw("\",\"routes\":{");
  for (unsigned i = 0; i < kRouteCount; ++i) {
    const hakmem_route_statistics& route = statistics.*kRouteFields[i];
    out.Raw(i == 0 ? "\"" : ",\"").Raw(RouteName(static_cast<Route>(i)));
    out.Raw("\":{\"allocations\":").Number(route.allocations);
    out.Raw(",\"bytes\":").Number(route.bytes).Raw("}");
  }
  out.Raw("}");
  for (const Row& row : kRows) out.Key(row.key).Number(statistics.*row.value);
  out.Key("classes").Raw("[");
  bool first = true;
  for (const ClassStatistics& entry : classes) {
    if (entry.slabs == 0) continue;
    if (!first) out.Raw(",");
    first = false;
    PrintClassJson(entry, out);
  }
  out.Raw("]}\n");
}

void PrintStatisticsText(const Statistics& statistics, ClassList classes,
                         const LineSink& sink) {
  constexpr std::size_t kNameWidth = 24;
  constexpr std::size_t kNumberWidth = 20;
  Lines lines(sink);
  RawPrinter& out = lines.out();
  out.Text("hakmem ")
      .Text(statistics.version)
      .Text(" ")
      .Text(statistics.variant);
  lines.End();
  for (unsigned i = 0; i < kRouteCount; ++i) {
    const hakmem_route_statistics& route = statistics.*kRouteFields[i];
    out.Text("  ");
    PrintLeft(RouteName(static_cast<Route>(i)), kNameWidth, out);
    PrintRight(route.allocations, kNumberWidth, out);
    out.Text(" calls, ").Bytes(route.bytes);
    lines.End();
  }
  for (const Row& row : kRows) {
    const std::uint64_t value = statistics.*row.value;
    if (!IsCounted(row, statistics)) continue;
    out.Text("  ");
    PrintLeft(row.words, kNameWidth, out);
    PrintRight(value, kNumberWidth, out);
    if (row.is_bytes) out.Text(" bytes, ").Bytes(value);
    lines.End();
  }
  PrintClassesText(classes, lines);
}

namespace {

// A family of metrics, and its samples.
class Metric {
 public:
  Metric(std::string_view name, bool is_gauge, std::string_view help,
         std::string_view labels, Lines& lines)
      : name_(name), is_gauge_(is_gauge), labels_(labels), lines_(lines) {
    Meta("TYPE", is_gauge ? "gauge" : "counter");
    if (name.ends_with("_bytes")) Meta("UNIT", "bytes");
    Meta("HELP", help);
  }

  void Sample(std::uint64_t value, std::string_view label = "",
              std::string_view label_value = "") {
    RawPrinter& out = lines_.out();
    out.Text("hakmem_").Text(name_).Text(is_gauge_ ? "" : "_total");
    out.Text("{").Text(labels_);
    if (!label.empty()) {
      out.Text(",").Text(label).Text("=\"").Text(label_value).Text("\"");
    }
    out.Text("} ").Decimal(value);
    lines_.End();
  }

 private:
  void Meta(std::string_view what, std::string_view text) {
    lines_.out().Text("# ").Text(what).Text(" hakmem_").Text(name_);
    lines_.out().Text(" ").Text(text);
    lines_.End();
  }

  std::string_view name_;
  bool is_gauge_;
  std::string_view labels_;
  Lines& lines_;
};

}  // namespace

void PrintStatisticsOpenMetrics(const Statistics& statistics,
                                const MetricsProcess& process,
                                const LineSink& sink) {
  Lines lines(sink);
  char buffer[kMaxLabelsBytes];
  JsonText text(buffer, sizeof(buffer));
  text.Raw("pid=\"").Number(process.id).Raw("\",program=");
  text.Label(process.program.substr(0, kMaxMetricsProgramBytes));
  const std::string_view labels = text.text();
  Metric calls("allocations", false, "calls served, by route", labels, lines);
  for (unsigned i = 0; i < kRouteCount; ++i) {
    calls.Sample((statistics.*kRouteFields[i]).allocations, "route",
                 RouteName(static_cast<Route>(i)));
  }
  Metric bytes("allocated_bytes", false, "bytes of the blocks served, by route",
               labels, lines);
  for (unsigned i = 0; i < kRouteCount; ++i) {
    bytes.Sample((statistics.*kRouteFields[i]).bytes, "route",
                 RouteName(static_cast<Route>(i)));
  }
  for (const Row& row : kRows) {
    if (!IsCounted(row, statistics)) continue;
    Metric metric(row.key, row.is_gauge, row.words, labels, lines);
    metric.Sample(statistics.*row.value);
  }
  if (process.resident_bytes != 0) {
    Metric metric("resident_bytes", true,
                  "the process's memory, as the kernel counts it", labels,
                  lines);
    metric.Sample(process.resident_bytes);
  }
  lines.out().Text("# EOF");
  lines.End();
}

void PrintStatisticsXml(const Statistics& statistics, ClassList classes,
                        const LineSink& sink) {
  Lines lines(sink);
  RawPrinter& out = lines.out();
  // "version" is that of glibc's format, whose root element this is.
  out.Text("<malloc version=\"1\">");
  lines.End();
  out.Text("<allocator name=\"hakmem\" version=\"").Text(statistics.version);
  out.Text("\" variant=\"").Text(statistics.variant).Text("\"/>");
  lines.End();
  for (unsigned i = 0; i < kRouteCount; ++i) {
    const hakmem_route_statistics& route = statistics.*kRouteFields[i];
    out.Text("<route name=\"").Text(RouteName(static_cast<Route>(i)));
    out.Text("\" allocations=\"").Decimal(route.allocations);
    out.Text("\" bytes=\"").Decimal(route.bytes).Text("\"/>");
    lines.End();
  }
  for (const Row& row : kRows) {
    out.Text("<").Text(row.key).Text(">").Decimal(statistics.*row.value);
    out.Text("</").Text(row.key).Text(">");
    lines.End();
  }
  for (const ClassStatistics& entry : classes) {
    if (entry.slabs == 0) continue;
    out.Text("<class");
    for (const ClassField& field : kClassFields) {
      out.Text(" ").Text(field.key).Text("=\"").Decimal(field.value(entry));
      out.Text("\"");
    }
    out.Text("/>");
    lines.End();
  }
  out.Text("</malloc>");
  lines.End();
}

}  // namespace hakmem
