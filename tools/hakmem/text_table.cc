#include "tools/hakmem/text_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kMaxLineBytes = 120;
constexpr std::size_t kGap = 2;

}  // namespace

Table::Table(std::vector<std::string> head, std::size_t left) : left_(left) {
  rows_.push_back({std::move(head), {}});
}

void Table::Add(std::vector<std::string> row, std::vector<std::string> below) {
  rows_.push_back({std::move(row), std::move(below)});
}

std::string Table::Text() const {
  std::vector<std::size_t> widths(rows_.front().cells.size(), 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], Columns(row.cells[i]));
    }
  }
  std::size_t margin = kGap;
  for (std::size_t i = 0; i < left_; ++i) margin += widths[i] + kGap;
  std::string text;
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string& cell = row.cells[i];
      const std::string space(widths[i] - Columns(cell), ' ');
      const bool ends_line = i > 0 && i + 1 == row.cells.size() && i == left_;
      absl::StrAppend(&text, std::string(kGap, ' '), i == left_ ? cell : space,
                      i != left_  ? cell
                      : ends_line ? ""
                                  : space);
    }
    text += '\n';
    for (const std::string& line : row.below) {
      absl::StrAppend(&text, std::string(margin, ' '), line, "\n");
    }
  }
  return text;
}

std::string Table::TextOf(std::size_t all) const {
  if (all == 0) return "  none\n";
  std::string text = size() > 0 ? Text() : "";
  if (all > size()) {
    absl::StrAppend(&text, "  and ", all - size(),
                    " more (--top=N shows more, --json all)\n");
  }
  return text;
}

std::string Grouped(std::uint64_t number) {
  std::string text = absl::StrCat(number);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat(
      "%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Shortened(const std::string& line) {
  if (line.size() <= kMaxLineBytes) return line;
  std::size_t end = kMaxLineBytes / 2;
  while ((line[end] & 0xc0) == 0x80) --end;  // within a character
  std::size_t begin = line.size() - kMaxLineBytes / 2;
  while ((line[begin] & 0xc0) == 0x80) ++begin;
  return absl::StrCat(line.substr(0, end), "…", line.substr(begin));
}

}  // namespace hakmem::tools
