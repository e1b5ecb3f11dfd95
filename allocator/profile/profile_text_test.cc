#include "allocator/profile/profile_text.h"

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr ProfileSource kSource = {.process_id = 12,
                                   .program = "a \"program\"",
                                   .version = "1.2",
                                   .variant = "release",
                                   .time_ns = 77};

void IsHere() {}

class ProfileTextTest : public testing::Test {
 protected:
  ProfileTextTest() {
    profile_.Start(64 * kKiB, /*stacks=*/true,
                   {memory_.RegionRange().begin, 64 * kMiB});
  }
  void Add(std::uint64_t block, std::uintptr_t address) {
    CallStack stack;
    stack.addresses[0] = address;
    stack.addresses[1] = 5;
    stack.count = 2;
    profile_.Add(reinterpret_cast<const void*>(block), 1 * kMiB, 0, stack);
  }
  std::vector<std::string> Lines() {
    std::string text;
    const LineSink sink = {.write =
                               [](void* context, std::string_view line) {
                                 *static_cast<std::string*>(context) += line;
                                 return true;
                               },
                           .context = &text};
    EXPECT_TRUE(WriteProfile(profile_, kSource, sink, room_));
    EXPECT_TRUE(text.ends_with('\n'));
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  FakeVirtualMemory memory_;
  HeapProfile profile_{memory_};
  ProfileRoom room_ = {};
};

TEST_F(ProfileTextTest, WithoutSamples) {
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            R"({"schema":"hakmem-heap-profile","version":1,"kind":"start",)"
            R"("pid":12,"program":"a \"program\"","hakmem":"1.2",)"
            R"("variant":"release","mean_bytes":65536,"time_ns":77})");
  constexpr const char* kNone = R"({"samples":0,"blocks":0,"bytes":0})";
  EXPECT_EQ(lines[1], std::string(R"({"kind":"end","sites":0,)") +
                          R"("lost_samples":0,"live":)" + kNone +
                          R"(,"peak":)" + kNone + R"(,"allocated":)" + kNone +
                          "}");
}

// A module has one line, before the first site that names it.
TEST_F(ProfileTextTest, SitesAndTheirModules) {
  const auto here = reinterpret_cast<std::uintptr_t>(&IsHere);
  Add(0x1000, here);
  Add(0x2000, here + 1);
  Add(0x3000, here + 1);
  profile_.Remove(reinterpret_cast<const void*>(0x1000));
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines[1].starts_with(R"({"kind":"module","path":"/)"));
  EXPECT_NE(
      lines[1].find(
          std::filesystem::read_symlink("/proc/self/exe").filename().string()),
      std::string::npos);
  EXPECT_NE(lines[1].find(R"(,"base":"0x)"), std::string::npos);
  std::ostringstream stack;
  stack << R"("stack":["0x)" << std::hex << here << R"(","0x5"]})";
  EXPECT_EQ(lines[2],
            R"({"kind":"site","live":{"samples":0,"blocks":0,"bytes":0},)"
            R"("peak":{"samples":1,"blocks":1,"bytes":1048576},)"
            R"("allocated":{"samples":1,"blocks":1,"bytes":1048576},)"
            R"("variances":{"live":0,"peak":0,"allocated":0},)" +
                stack.str());
  EXPECT_TRUE(lines[3].starts_with(
      R"({"kind":"site","live":{"samples":2,"blocks":2,"bytes":2097152},)"));
  EXPECT_TRUE(lines[4].starts_with(R"({"kind":"end","sites":2,)"));
}

TEST_F(ProfileTextTest, EndsWhenTheSinkDoes) {
  for (unsigned i = 0; i < 10; ++i) Add(0x1000 * (i + 1), 1000 * i);
  for (unsigned most = 0; most < 12; ++most) {
    unsigned left = most;
    const LineSink sink = {.write =
                               [](void* context, std::string_view) {
                                 auto& rest = *static_cast<unsigned*>(context);
                                 return rest != 0 && rest-- != 0;
                               },
                           .context = &left};
    EXPECT_FALSE(WriteProfile(profile_, kSource, sink, room_));
  }
}

}  // namespace
}  // namespace hakmem
