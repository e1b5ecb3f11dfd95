#include "allocator/base/line_end.h"

#include <unistd.h>

#include <string>

#include "allocator/base/call_filter.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class LineEndTest : public testing::Test {
 protected:
  void TearDown() override {
    g_filter.store(Filter::kUnknown, std::memory_order_relaxed);
    NoteProgram(nullptr);
    NoteProcessId(0);
  }
  static std::string End() { return std::string(LineEnd().text()); }
};

TEST_F(LineEndTest, NamesWhatIsKnown) {
  EXPECT_EQ(End(), " (hakmem)\n");
  NoteProgram("perl");
  EXPECT_EQ(End(), " (perl)\n");
  NoteProcessId(12);
  EXPECT_EQ(End(), " (perl, process 12)\n");
}

TEST_F(LineEndTest, LongNamesAreCut) {
  const std::string name(500, 'x');
  NoteProgram(name.c_str());
  NoteProcessId(2147483647);
  EXPECT_EQ(End(), " (" + std::string(60, 'x') + ", process 2147483647)\n");
}

// Who names a file writes no lines of ours.
TEST_F(LineEndTest, NamesStayOneLine) {
  NoteProgram("a\n\x1b[31mhakmem: \x7f\xc2\x9b~ ");
  EXPECT_EQ(End(), " (a??[31mhakmem: ???~ )\n");
}

// A process without fork's handlers has its own number, too.
TEST_F(LineEndTest, TheKernelIsAskedWhereNoFilterHolds) {
  NoteProcessId(12);
  g_filter.store(Filter::kNone, std::memory_order_relaxed);
  EXPECT_EQ(End(), " (hakmem, process " + std::to_string(getpid()) + ")\n");
  for (const Filter filter :
       {Filter::kUnknown, Filter::kAtStart, Filter::kNoted}) {
    g_filter.store(filter, std::memory_order_relaxed);
    EXPECT_EQ(End(), " (hakmem, process 12)\n");
  }
}

}  // namespace
}  // namespace hakmem
