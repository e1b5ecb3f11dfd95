// That the tests run on the allocator they are meant for.

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string ProgramName() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string name(path,
                         length < 0 ? 0 : static_cast<std::size_t>(length));
  return name.substr(name.rfind('/') + 1);
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TEST(AllocatorUnderTest, IsTheOneTheProgramIsNamedAfter) {
  const std::string name = ProgramName();
  if (OnHakmem() && !EndsWith(name, "_on_libc")) {
    EXPECT_TRUE(EndsWith(name, std::string("_test_") + Hakmem().variant()))
        << name << " runs on " << Hakmem().variant();
  } else {
    // Preloading makes it hakmem's after all.
    EXPECT_TRUE(EndsWith(name, "_on_libc")) << name;
    EXPECT_EQ(OnHakmem(), getenv("LD_PRELOAD") != nullptr);
  }
}

}  // namespace
}  // namespace hakmem
