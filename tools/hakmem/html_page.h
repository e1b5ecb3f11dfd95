// What the pages of all subcommands share: their head, their style, paragraphs
// and tables. A page needs no network: its policy forbids every request.
#ifndef HAKMEM_TOOLS_HAKMEM_HTML_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_HTML_PAGE_H_

#include <cstdint>
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

// A drawing of bytes over time in a plot's own units, which is stretched to its
// place; every text stands outside of it, so that it has the reader's size.
inline constexpr int kPlotWidth = 1000;
inline constexpr int kPlotHeight = 300;

// The number at the top of an axis: one of the unit that `bytes` is read in, so
// that labels are like 64 MiB and not 61.3 MiB.
std::uint64_t AxisTop(std::uint64_t bytes);

// An SVG with a grid behind `paths`; `label` is for who cannot see it.
std::string PlotSvg(std::string_view label, std::string_view paths);

struct PlotParts {
  std::string_view label;
  std::uint64_t top_bytes = 0;  // 0: the axis has no numbers
  std::string_view drawing;     // HTML: PlotSvg's, and marks over it
  std::string_view from;        // the time on the left
  std::string_view to;
  std::string_view below = {};  // HTML
};
std::string HtmlPlot(const PlotParts& parts);

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
