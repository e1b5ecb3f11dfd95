#include "allocator/options/options_doc.h"

#include <fstream>
#include <sstream>
#include <string>

#include "allocator/config/options.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(OptionsDoc, IsWhatTheRepositoryHas) {
  std::ifstream file("docs/options.md");
  ASSERT_TRUE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), OptionsDoc())
      << "Run: bazel run //allocator/options:options_doc > docs/options.md";
}

TEST(OptionsDoc, NamesEveryOptionOnce) {
  const std::string doc = OptionsDoc();
  for (const OptionSpec& spec : kOptionTable) {
    const std::string row = "| `" + std::string(spec.name) + "` |";
    const std::size_t first = doc.find(row);
    ASSERT_NE(first, std::string::npos) << row;
    EXPECT_EQ(doc.find(row, first + 1), std::string::npos) << row;
    EXPECT_NE(doc.find(spec.sentence, first), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace hakmem
