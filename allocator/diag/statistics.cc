#include "allocator/diag/statistics.h"

#include <string_view>

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
constexpr std::size_t kMaxEscapeBytes = 6;  // \u001f

// How many bytes the UTF-8 character takes that `text` begins with; 0 when it
// begins with none.
std::size_t Utf8Bytes(std::string_view text) {
  const auto byte = [text](std::size_t at) {
    return static_cast<unsigned char>(text[at]);
  };
  std::size_t bytes = 0;
  if (byte(0) < 0x80) {
    bytes = 1;
  } else if (byte(0) >= 0xc2 && byte(0) < 0xe0) {
    bytes = 2;
  } else if (byte(0) >= 0xe0 && byte(0) < 0xf0) {
    bytes = 3;
  } else if (byte(0) >= 0xf0 && byte(0) < 0xf5) {
    bytes = 4;
  }
  if (bytes > text.size()) return 0;
  for (std::size_t at = 1; at < bytes; ++at) {
    if (byte(at) < 0x80 || byte(at) > 0xbf) return 0;
  }
  // Forms that are too long, surrogates, and what is beyond Unicode.
  if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xed && byte(1) > 0x9f) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xf4 && byte(1) > 0x8f) return 0;
  return bytes;
}

void PrintEscaped(std::string_view text, RawPrinter& out) {
  const std::size_t end = out.text().size() + kMaxProgramBytes;
  while (!text.empty() && out.text().size() + kMaxEscapeBytes <= end) {
    const std::size_t bytes = Utf8Bytes(text);
    const char c = text.front();
    if (bytes == 0) {
      out.Text("\\ufffd");  // U+FFFD, the replacement character
    } else if (c == '"' || c == '\\') {
      out.Text("\\").Text(text.substr(0, 1));
    } else if (bytes == 1 && (c < ' ' || c == 0x7f)) {
      const unsigned code = static_cast<unsigned char>(c);
      out.Text("\\u00");
      for (const unsigned digit : {code / 16, code % 16}) {
        out.Text({&"0123456789abcdef"[digit], 1});
      }
    } else {
      out.Text(text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
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
  out.Text("{\"pid\":").SignedDecimal(process_id).Text(",\"program\":\"");
  PrintEscaped(program, out);
  out.Text("\",\"variant\":\"").Text(statistics.variant);
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
