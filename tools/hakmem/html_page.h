// What the pages of all subcommands share: their head, their style, paragraphs
// and tables. A page needs no network: its policy forbids every request.
#ifndef HAKMEM_TOOLS_HAKMEM_HTML_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_HTML_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

namespace hakmem::tools {

// Light and dark as the reader's system, for windows from 360 pixels to paper
// (html_style.cc).
extern const std::string_view kPageStyle;

struct PageHeadParts {
  std::string_view title;
  std::string_view more_style = {};
  // The hash of the one script that may run, "sha256-…"; none if empty.
  std::string_view script_hash = {};
};

// From the document's type to </head>.
std::string PageHead(const PageHeadParts& parts);

// `style` is a class or empty; `text` is text.
std::string HtmlParagraph(std::string_view style, std::string_view text);

// A list of remarks; "" of none.
std::string HtmlList(const std::vector<std::string>& texts);

// A table whose rows become lists where it is narrow. The cells are HTML.
class HtmlTable {
 public:
  // Columns whose title begins with '<' hold words, those with '=' words that
  // are not broken, the others numbers.
  HtmlTable(std::string_view name, const std::vector<std::string_view>& titles);

  void Row(const std::vector<std::string>& cells);

  std::string Html() const;

 private:
  std::string html_;
  std::vector<std::string_view> titles_;
  std::vector<std::string_view> styles_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HTML_PAGE_H_
