#include "allocator/statistics/statistics.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

Statistics Numbered() {
  Statistics statistics;
  statistics.variant = "release";
  for (unsigned i = 0; i < kRouteCount; ++i) {
    statistics.routes[i] = {.allocations = i + 1, .bytes = 1024 * (i + 1)};
  }
  statistics.remote_frees = 11;
  statistics.reallocs_in_place = 12;
  statistics.reallocs_moved = 13;
  statistics.failures = 14;
  statistics.mapped_bytes = 15;
  statistics.peak_mapped_bytes = 16;
  statistics.metadata_bytes = 17;
  statistics.granted_bytes = 18;
  statistics.cached_bytes = 19;
  statistics.map_calls = 20;
  statistics.unmap_calls = 21;
  statistics.purge_calls = 22;
  statistics.move_calls = 23;
  statistics.heaps_created = 24;
  statistics.heaps_abandoned = 25;
  statistics.refills_from_partial_slabs = 26;
  statistics.refills_from_empty_slabs = 27;
  statistics.heaps_adopted = 28;
  statistics.slabs_from_kept_units = 29;
  statistics.slabs_from_clean_units = 30;
  statistics.slabs_from_new_frames = 31;
  statistics.misuses = 32;
  return statistics;
}

std::string Json(const Statistics& statistics, const std::string& program) {
  RawPrinter out;
  PrintStatisticsJson(statistics, 77, program.c_str(), out);
  EXPECT_FALSE(out.truncated());
  return std::string(out.text());
}

// What the program's name becomes.
std::string Escaped(const std::string& program) {
  const std::string json = Json(Numbered(), program);
  const std::string before = "{\"pid\":77,\"program\":\"";
  EXPECT_EQ(json.substr(0, before.size()), before);
  const std::size_t end = json.find("\",\"variant\":");
  return json.substr(before.size(), end - before.size());
}

TEST(Statistics, JsonHasEveryField) {
  EXPECT_EQ(
      Json(Numbered(), "prog"),
      "{\"pid\":77,\"program\":\"prog\",\"variant\":\"release\",\"routes\":{"
      "\"tiny\":{\"allocations\":1,\"bytes\":1024},"
      "\"pool\":{\"allocations\":2,\"bytes\":2048},"
      "\"span\":{\"allocations\":3,\"bytes\":3072},"
      "\"huge\":{\"allocations\":4,\"bytes\":4096}},"
      "\"remote_frees\":11,\"reallocs_in_place\":12,\"reallocs_moved\":13,"
      "\"failures\":14,\"mapped_bytes\":15,\"peak_mapped_bytes\":16,"
      "\"metadata_bytes\":17,\"granted_bytes\":18,\"cached_bytes\":19,"
      "\"map_calls\":20,\"unmap_calls\":21,\"purge_calls\":22,"
      "\"move_calls\":23,\"heaps_created\":24,\"heaps_abandoned\":25,"
      "\"refills_from_partial_slabs\":26,\"refills_from_empty_slabs\":27,"
      "\"heaps_adopted\":28,\"slabs_from_kept_units\":29,"
      "\"slabs_from_clean_units\":30,\"slabs_from_new_frames\":31,"
      "\"misuses\":32}\n");
}

TEST(Statistics, JsonEscapesTheProgram) {
  EXPECT_EQ(Escaped(""), "");
  EXPECT_EQ(Escaped("a \"b\" \\c"), "a \\\"b\\\" \\\\c");
  EXPECT_EQ(Escaped("a\nb\x1f\x7f"), "a\\u000ab\\u001f\\u007f");
  // UTF-8 stays: two, three and four bytes.
  EXPECT_EQ(Escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x8e"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x8e");
  EXPECT_EQ(Escaped("a\xff"), "a\\\\xff");
}

TEST(Statistics, JsonIsWholeHoweverLong) {
  Statistics most = Numbered();
  most.variant = "hardened";
  for (RouteStatistics& route : most.routes) {
    route = {.allocations = std::numeric_limits<std::uint64_t>::max(),
             .bytes = std::numeric_limits<std::uint64_t>::max()};
  }
  for (std::uint64_t* value : {&most.remote_frees,
                               &most.reallocs_in_place,
                               &most.reallocs_moved,
                               &most.failures,
                               &most.mapped_bytes,
                               &most.peak_mapped_bytes,
                               &most.metadata_bytes,
                               &most.granted_bytes,
                               &most.cached_bytes,
                               &most.map_calls,
                               &most.unmap_calls,
                               &most.purge_calls,
                               &most.move_calls,
                               &most.heaps_created,
                               &most.heaps_abandoned,
                               &most.refills_from_partial_slabs,
                               &most.refills_from_empty_slabs,
                               &most.heaps_adopted,
                               &most.slabs_from_kept_units,
                               &most.slabs_from_clean_units,
                               &most.slabs_from_new_frames,
                               &most.misuses}) {
    *value = std::numeric_limits<std::uint64_t>::max();
  }
  for (const char filler : {'x', '\n', '\xff'}) {
    const std::string json = Json(most, std::string(4096, filler));
    EXPECT_EQ(json.substr(json.size() - 3), "5}\n");
  }
}

TEST(Statistics, TextForPeople) {
  RawPrinter out;
  Statistics statistics = Numbered();
  statistics.mapped_bytes = 2 * 1024 * 1024;
  PrintStatisticsText(statistics, out);
  EXPECT_FALSE(out.truncated());
  EXPECT_EQ(out.text(),
            "hakmem 0.1.0 release\n"
            "  tiny                                       1 calls, 1.0 KiB\n"
            "  pool                                       2 calls, 2.0 KiB\n"
            "  span                                       3 calls, 3.0 KiB\n"
            "  huge                                       4 calls, 4.0 KiB\n"
            "  freed by another thread                   11\n"
            "  reallocs in place                         12\n"
            "  reallocs moved                            13\n"
            "  failed                                    14\n"
            "  mapped                               2097152 bytes, 2.0 MiB\n"
            "  mapped at most                            16 bytes, 16 bytes\n"
            "  metadata                                  17 bytes, 17 bytes\n"
            "  in slabs and spans                        18 bytes, 18 bytes\n"
            "  cached                                    19 bytes, 19 bytes\n"
            "  map calls                                 20\n"
            "  unmap calls                               21\n"
            "  purge calls                               22\n"
            "  move calls                                23\n"
            "  heaps created                             24\n"
            "  heaps without a thread                    25\n"
            "  refills, partial slabs                    26\n"
            "  refills, empty slabs                      27\n"
            "  heaps adopted                             28\n"
            "  slabs, kept units                         29\n"
            "  slabs, clean units                        30\n"
            "  slabs, new frames                         31\n"
            "  misuses                                   32\n");
}

}  // namespace
}  // namespace hakmem
