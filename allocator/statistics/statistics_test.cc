#include "allocator/statistics/statistics.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/base/raw_print.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

Statistics Numbered() {
  Statistics statistics;
  statistics.variant = "release";
  for (unsigned i = 0; i < kRouteCount; ++i) {
    statistics.*
        kRouteFields[i] = {.allocations = i + 1, .bytes = 1024 * (i + 1)};
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
  statistics.ace_lock_waits = 33;
  statistics.heap_lock_waits = 34;
  statistics.registry_lock_waits = 35;
  statistics.magazine_pool_lock_waits = 36;
  statistics.exchange_lock_waits = 37;
  statistics.ace_lock_wait_ns = 38;
  statistics.heap_lock_wait_ns = 39;
  statistics.registry_lock_wait_ns = 40;
  statistics.magazine_pool_lock_wait_ns = 41;
  statistics.exchange_lock_wait_ns = 42;
  return statistics;
}

TEST(Statistics, KeptBytesAreFree) {
  Statistics statistics;
  statistics.granted_bytes = 1000;
  statistics.cached_bytes = 10;
  statistics.CountKept(300);
  EXPECT_EQ(statistics.granted_bytes, 700U);
  EXPECT_EQ(statistics.cached_bytes, 310U);
  // Some have been given back since.
  statistics.CountKept(800);
  EXPECT_EQ(statistics.granted_bytes, 0U);
  EXPECT_EQ(statistics.cached_bytes, 1010U);
  statistics.CountKept(1);
  EXPECT_EQ(statistics.granted_bytes, 0U);
  EXPECT_EQ(statistics.cached_bytes, 1010U);
  // ACE's figures are in between.
  statistics.granted_bytes -= 100;
  statistics.CountKept(1);
  EXPECT_EQ(statistics.granted_bytes, 0U);
  EXPECT_EQ(statistics.cached_bytes, 1010U);
}

TEST(OpenMetrics, LabelsAreEscapedAndCut) {
  std::string text;
  const LineSink sink = {
      .write =
          [](void* context, std::string_view lines) {
            static_cast<std::string*>(context)->append(lines);
            return true;
          },
      .context = &text};
  PrintStatisticsOpenMetrics(Numbered(), {.id = 7, .program = "a\"\n"}, sink);
  const std::string labels = "{pid=\"7\",program=\"a\\\"\\\\x0a\"";
  EXPECT_NE(text.find("\nhakmem_misuses_total" + labels + "} 32\n"),
            std::string::npos);
  EXPECT_NE(text.find("_total" + labels + ",route=\"tiny\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(text.find("resident"), std::string::npos);
  text.clear();
  const std::string longest(100, '\xff');
  PrintStatisticsOpenMetrics(
      Numbered(), {.id = ~0ULL, .program = longest, .resident_bytes = 5}, sink);
  EXPECT_NE(text.find("\\\\xff\"} 5\n# EOF\n"), std::string::npos);
}

// One in use, one without slabs, one that is full.
constexpr ClassStatistics kClasses[] = {
    {.block_bytes = 1024,
     .bytes_per_slab = 65536,
     .slabs = 3,
     .live_blocks = 40,
     .free_blocks = 152},
    {.block_bytes = 1280, .bytes_per_slab = 65536},
    {.block_bytes = 20480,
     .bytes_per_slab = 262144,
     .slabs = 1,
     .live_blocks = 12}};

TEST(StatisticsJson, BeginsWithTheProcessAndItsEnd) {
  std::string buffer(kStatisticsJsonBytes, '\0');
  JsonText out(buffer.data(), buffer.size());
  PrintStatisticsJson(
      {}, {},
      {.process_id = 77, .program = "p", .unix_seconds = 1234, .signal = 15},
      out);
  EXPECT_TRUE(out.text().starts_with(
      "{\"pid\":77,\"program\":\"p\",\"time\":1234,\"signal\":15,"))
      << out.text();
}

std::string Json(const Statistics& statistics, ClassList classes,
                 const std::string& program) {
  std::string buffer(kStatisticsJsonBytes, '\0');
  JsonText out(buffer.data(), buffer.size());
  PrintStatisticsJson(statistics, classes,
                      {.process_id = 77, .program = program.c_str()}, out);
  EXPECT_FALSE(out.overflowed());
  return std::string(out.text());
}

using Printer = void (*)(const Statistics& statistics, ClassList classes,
                         const LineSink& sink);

// All that is written; each time, these are whole lines.
std::string Written(Printer print, const Statistics& statistics,
                    ClassList classes) {
  std::string text;
  const auto append = [](void* context, std::string_view lines) {
    EXPECT_TRUE(lines.ends_with("\n")) << lines;
    EXPECT_LT(lines.size(), RawPrinter::kCapacityBytes - 1);
    static_cast<std::string*>(context)->append(lines);
    return true;
  };
  print(statistics, classes, {.write = append, .context = &text});
  return text;
}

// What the program's name becomes.
std::string Escaped(const std::string& program) {
  const std::string json = Json(Numbered(), {}, program);
  const std::string before = "{\"pid\":77,\"program\":\"";
  EXPECT_EQ(json.substr(0, before.size()), before);
  const std::size_t end = json.find("\",\"variant\":");
  return json.substr(before.size(), end - before.size());
}

TEST(Statistics, JsonHasEveryField) {
  EXPECT_EQ(
      Json(Numbered(), kClasses, "prog"),
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
      "\"misuses\":32,\"ace_lock_waits\":33,\"heap_lock_waits\":34,"
      "\"registry_lock_waits\":35,\"magazine_pool_lock_waits\":36,"
      "\"exchange_lock_waits\":37,\"ace_lock_wait_ns\":38,"
      "\"heap_lock_wait_ns\":39,\"registry_lock_wait_ns\":40,"
      "\"magazine_pool_lock_wait_ns\":41,\"exchange_lock_wait_ns\":42,"
      "\"classes\":["
      "{\"block_bytes\":1024,\"slabs\":3,\"slab_bytes\":196608,"
      "\"live_blocks\":40,\"live_bytes\":40960,\"free_blocks\":152,"
      "\"fragmentation_permille\":791},"
      "{\"block_bytes\":20480,\"slabs\":1,\"slab_bytes\":262144,"
      "\"live_blocks\":12,\"live_bytes\":245760,\"free_blocks\":0,"
      "\"fragmentation_permille\":62}]}\n");
}

TEST(Statistics, JsonOfNoClassHasAnEmptyList) {
  EXPECT_TRUE(Json(Numbered(), {}, "").ends_with(",\"classes\":[]}\n"));
  const ClassStatistics unused = kClasses[1];
  EXPECT_TRUE(
      Json(Numbered(), {&unused, 1}, "").ends_with(",\"classes\":[]}\n"));
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

// As many as the allocator has, each with the longest numbers.
constexpr auto kMostClasses = [] {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  std::array<ClassStatistics, 44> classes;
  classes.fill({.block_bytes = kMost,
                .bytes_per_slab = kMost,
                .slabs = kMost,
                .live_blocks = std::uint64_t{1} << 63,
                .free_blocks = std::uint64_t{1} << 63});
  return classes;
}();

TEST(Statistics, IsWholeHoweverLong) {
  Statistics most = Numbered();
  most.variant = "hardened";
  for (const auto route : kRouteFields) {
    most.*route = {.allocations = std::numeric_limits<std::uint64_t>::max(),
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
                               &most.misuses,
                               &most.ace_lock_waits,
                               &most.heap_lock_waits,
                               &most.registry_lock_waits,
                               &most.magazine_pool_lock_waits,
                               &most.exchange_lock_waits,
                               &most.ace_lock_wait_ns,
                               &most.heap_lock_wait_ns,
                               &most.registry_lock_wait_ns,
                               &most.magazine_pool_lock_wait_ns,
                               &most.exchange_lock_wait_ns}) {
    *value = std::numeric_limits<std::uint64_t>::max();
  }
  for (const char filler : {'x', '\n', '\xff'}) {
    const std::string json =
        Json(most, kMostClasses, std::string(4096, filler));
    EXPECT_TRUE(json.ends_with("}]}\n"));
  }
  for (const Printer print : {&PrintStatisticsText, &PrintStatisticsXml}) {
    Written(print, most, kMostClasses);
  }
}

TEST(Statistics, TextForPeople) {
  Statistics statistics = Numbered();
  statistics.mapped_bytes = 2 * 1024 * 1024;
  EXPECT_EQ(Written(&PrintStatisticsText, statistics, kClasses),
            "hakmem 0.1.0 release\n"
            "  tiny                                       1 calls, 1.0 KiB\n"
            "  pool                                       2 calls, 2.0 KiB\n"
            "  span                                       3 calls, 3.0 KiB\n"
            "  huge                                       4 calls, 4.0 KiB\n"
            "  freed by another thread                   11\n"
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
            "  misuses                                   32\n"
            "  waits, ACE's lock                         33\n"
            "  waits, heaps' locks                       34\n"
            "  waits, registry                           35\n"
            "  waits, magazine pool                      36\n"
            "  waits, exchange                           37\n"
            "  ns asleep, ACE's lock                     38\n"
            "  ns asleep, heaps' locks                   39\n"
            "  ns asleep, registry                       40\n"
            "  ns asleep, magazine pool                  41\n"
            "  ns asleep, exchange                       42\n"
            "  class     slabs   live blocks      live bytes   free blocks"
            "  unused\n"
            "   1024         3            40           40960           152"
            "  79.1 %\n"
            "  20480         1            12          245760             0"
            "   6.2 %\n");
}

TEST(Statistics, ReallocsAreToldWhereTheyAreCounted) {
  Statistics statistics = Numbered();
  for (const char* const variant :
       {"release", "tracing", "hardened", "debug"}) {
    statistics.variant = variant;
    const std::string text =
        Written(&PrintStatisticsText, statistics, kClasses);
    const bool counts = variant[0] == 't' || variant[0] == 'd';
    EXPECT_EQ(text.find("reallocs") != std::string::npos, counts) << text;
  }
}

TEST(Statistics, XmlHasEveryField) {
  const std::string xml = Written(&PrintStatisticsXml, Numbered(), kClasses);
  EXPECT_TRUE(xml.starts_with(
      "<malloc version=\"1\">\n"
      "<allocator name=\"hakmem\" version=\"0.1.0\" variant=\"release\"/>\n"
      "<route name=\"tiny\" allocations=\"1\" bytes=\"1024\"/>\n"))
      << xml;
  EXPECT_NE(xml.find("\n<remote_frees>11</remote_frees>\n"), xml.npos) << xml;
  EXPECT_TRUE(xml.ends_with(
      "\n<exchange_lock_wait_ns>42</exchange_lock_wait_ns>\n"
      "<class block_bytes=\"1024\" slabs=\"3\" slab_bytes=\"196608\""
      " live_blocks=\"40\" live_bytes=\"40960\" free_blocks=\"152\""
      " fragmentation_permille=\"791\"/>\n"
      "<class block_bytes=\"20480\" slabs=\"1\" slab_bytes=\"262144\""
      " live_blocks=\"12\" live_bytes=\"245760\" free_blocks=\"0\""
      " fragmentation_permille=\"62\"/>\n"
      "</malloc>\n"))
      << xml;
}

}  // namespace
}  // namespace hakmem
