#include "tools/hakmem/perf_map.h"

#include "gtest/gtest.h"

namespace hakmem::tools {
namespace {

TEST(PerfMapTest, FindsTheFunctionAtAnAddress) {
  PerfMap map;
  map.Read("1000 20 first\nno line\n1020 10 second one\n\n2000 0 empty\n");
  EXPECT_EQ(map.At(0xfff), nullptr);
  ASSERT_NE(map.At(0x1000), nullptr);
  EXPECT_EQ(map.At(0x1000)->line.function, "first");
  EXPECT_EQ(map.At(0x101f)->line.function, "first");
  ASSERT_NE(map.At(0x102f), nullptr);
  EXPECT_EQ(map.At(0x102f)->line.function, "second one");
  EXPECT_EQ(map.At(0x1030), nullptr);
  EXPECT_EQ(map.At(0x2000), nullptr);
}

TEST(PerfMapTest, TheLastOneAtAPlaceIsThere) {
  PerfMap map;
  map.Read("1000 20 old\n1000 8 new\n");
  EXPECT_EQ(map.At(0x1004)->line.function, "new");
  EXPECT_EQ(map.At(0x1010), nullptr);
}

TEST(PerfMapTest, NumbersThatWrapAroundAreNone) {
  PerfMap map;
  map.Read("fffffffffffffff0 20 wraps\n1000 ffffffffffff long\n");
  EXPECT_EQ(map.At(0xfffffffffffffff8), nullptr);
  EXPECT_EQ(map.At(0x1000), nullptr);
}

TEST(PerfMapTest, NamesAreFunctionsAndPlaces) {
  const SourceLine script = JitName("JS:~leak /srv/a b.js:2:21");
  EXPECT_EQ(script.function, "leak");
  EXPECT_EQ(script.place, "/srv/a b.js:2:21");
  EXPECT_EQ(JitName("JS:* node:timers:1:2").function, "(anonymous)");
  EXPECT_EQ(JitName("JS:^get size").function, "get size");
  EXPECT_EQ(JitName("JS:^get size /srv/a.js:3:1").function, "get size");
  EXPECT_EQ(JitName("JS:^get size /srv/a.js:3:1").place, "/srv/a.js:3:1");
  EXPECT_EQ(JitName("py::Leak.add:/srv/leak.py").function, "Leak.add");
  EXPECT_EQ(JitName("py::Leak.add:/srv/leak.py").place, "/srv/leak.py");
  EXPECT_EQ(JitName("void a.B::c(int)").function, "void a.B::c(int)");
}

TEST(PerfMapTest, KnowsItsName) {
  EXPECT_TRUE(PerfMap::IsItsName("/tmp/perf-12.map"));
  EXPECT_FALSE(PerfMap::IsItsName("/tmp/perf-x.map"));
  EXPECT_FALSE(PerfMap::IsItsName("/usr/lib/libperf.so"));
  EXPECT_TRUE(PerfMap::OfFile("/nowhere/perf-1.map").At(1) == nullptr);
}

}  // namespace
}  // namespace hakmem::tools
