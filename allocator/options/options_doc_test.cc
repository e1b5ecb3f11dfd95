#include "allocator/options/options_doc.h"

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

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
  for (const OptionRow& option : kOptionRows) {
    const std::string row = "| `" + std::string(option.name) + "` |";
    const std::size_t first = doc.find(row);
    ASSERT_NE(first, std::string::npos) << row;
    EXPECT_EQ(doc.find(row, first + 1), std::string::npos) << row;
    EXPECT_EQ(std::string_view(option.sentence).back(), '.');
    EXPECT_NE(doc.find(option.sentence, first), std::string::npos) << row;
  }
}

}  // namespace
}  // namespace hakmem
