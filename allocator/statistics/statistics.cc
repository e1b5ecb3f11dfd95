#include "allocator/statistics/statistics.h"

#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/config/version.h"

namespace hakmem {

namespace {

// The numbers that follow the routes, with their JSON keys and their words.
struct Row {
  const char* key;
  const char* words;
  std::uint64_t Statistics::* value;
  bool is_bytes;
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
     false},
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
};

// The most that a program's name may take of the line; the rest takes at most
// 1,660 bytes.
constexpr std::size_t kMaxProgramBytes = 360;

// As a string, of which the beginning stands when it is too long.
void PrintProgram(std::string_view program, RawPrinter& out) {
  char buffer[kMaxProgramBytes];
  JsonText name(buffer, sizeof(buffer));
  name.String(program);
  out.Text(name.text());
  if (name.overflowed()) out.Text("\"");
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
  PrintLeft("", width - digits, out);
  out.Decimal(value);
}

}  // namespace

void PrintStatisticsJson(const Statistics& statistics, int process_id,
                         const char* program, RawPrinter& out) {
  out.Text("{\"pid\":").SignedDecimal(process_id).Text(",\"program\":");
  PrintProgram(program, out);
  out.Text(",\"variant\":\"").Text(statistics.variant);
  out.Text("\",\"routes\":{");
  for (unsigned i = 0; i < kRouteCount; ++i) {
    const RouteStatistics& route = statistics.routes[i];
    out.Text(i == 0 ? "\"" : ",\"").Text(RouteName(static_cast<Route>(i)));
    out.Text("\":{\"allocations\":").Decimal(route.allocations);
    out.Text(",\"bytes\":").Decimal(route.bytes).Text("}");
  }
  out.Text("}");
  for (const Row& row : kRows) {
    out.Text(",\"").Text(row.key).Text("\":").Decimal(statistics.*row.value);
  }
  out.Text("}\n");
}

void PrintStatisticsText(const Statistics& statistics, RawPrinter& out) {
  constexpr std::size_t kNameWidth = 24;
  constexpr std::size_t kNumberWidth = 20;
  out.Text("hakmem ").Text(kVersion).Text(" ").Text(statistics.variant);
  out.Text("\n");
  for (unsigned i = 0; i < kRouteCount; ++i) {
    const RouteStatistics& route = statistics.routes[i];
    out.Text("  ");
    PrintLeft(RouteName(static_cast<Route>(i)), kNameWidth, out);
    PrintRight(route.allocations, kNumberWidth, out);
    out.Text(" calls, ").Bytes(route.bytes).Text("\n");
  }
  for (const Row& row : kRows) {
    const std::uint64_t value = statistics.*row.value;
    out.Text("  ");
    PrintLeft(row.words, kNameWidth, out);
    PrintRight(value, kNumberWidth, out);
    if (row.is_bytes) out.Text(" bytes, ").Bytes(value);
    out.Text("\n");
  }
}

}  // namespace hakmem
