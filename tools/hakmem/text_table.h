// Tables for a terminal, and how their cells are written.
#ifndef HAKMEM_TOOLS_HAKMEM_TEXT_TABLE_H_
#define HAKMEM_TOOLS_HAKMEM_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hakmem::tools {

// The column `left` begins at the left, the others end at the right. A row may
// have lines below it, which begin where the column `left` does.
class Table {
 public:
  explicit Table(std::vector<std::string> head, std::size_t left = 0);

  void Add(std::vector<std::string> row, std::vector<std::string> below = {});
  std::size_t size() const { return rows_.size() - 1; }

  std::string Text() const;
  // The same where there were `all` rows, and --top chose how many are here.
  std::string TextOf(std::size_t all) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> below;
  };

  std::size_t left_;
  std::vector<Row> rows_;
};

// Thousands apart.
std::string Grouped(std::uint64_t number);

// "12.5%"; "-" of nothing.
std::string Percent(std::uint64_t part, std::uint64_t whole);

// A function of templates may have a name of pages.
std::string Shortened(const std::string& line);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TEXT_TABLE_H_
