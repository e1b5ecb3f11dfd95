#include "tools/hakmem/html_page.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {

std::uint64_t AxisTop(std::uint64_t bytes) {
  std::uint64_t unit = 1;
  while (bytes / unit >= 1024 && unit <= (std::uint64_t{1} << 50)) unit *= 1024;
  for (std::uint64_t step = 1; step <= 1024; step *= 2) {
    if (step * unit >= bytes) return step * unit;
  }
  return bytes;
}

std::string PlotSvg(std::string_view label, std::string_view paths) {
  std::string svg =
      absl::StrCat("<svg viewBox=\"0 0 ", kPlotWidth, " ", kPlotHeight,
                   "\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                   ForHtml(label), "\">");
  for (const int quarter : {0, 1, 2, 3, 4}) {
    absl::StrAppend(&svg, "<path class=\"grid\" d=\"M0,",
                    kPlotHeight * quarter / 4, "H", kPlotWidth, "\"/>");
  }
  return absl::StrCat(svg, paths, "</svg>");
}

std::string HtmlPlot(const PlotParts& parts) {
  const std::uint64_t top = parts.top_bytes;
  return absl::StrCat(
      "<figure><figcaption>", ForHtml(parts.label),
      "</figcaption><div class=\"plot\"><div class=\"y\" aria-hidden=\"true\">"
      "<span>",
      top == 0 ? "" : Bytes(top), "</span><span>",
      top == 0 ? "" : Bytes(top / 2),
      "</span><span>0</span></div><div class=\"area\">", parts.drawing,
      "</div><div class=\"x\" aria-hidden=\"true\"><span>", ForHtml(parts.from),
      "</span><span>", ForHtml(parts.to), "</span></div></div>", parts.below,
      "</figure>\n");
}

std::string PageHead(const PageHeadParts& parts) {
  const std::string scripts =
      parts.script_hash.empty()
          ? ""
          : absl::StrCat("; script-src '", parts.script_hash, "'");
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; style-src 'unsafe-inline'; img-src data:",
      scripts,
      "\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      ForHtml(parts.title), "</title>\n<style>", kPageStyle, parts.more_style,
      "</style>\n</head>\n");
}

std::string HtmlParagraph(std::string_view style, std::string_view text) {
  return absl::StrCat("<p", style.empty() ? "" : " class=\"", style,
                      style.empty() ? ">" : "\">", ForHtml(text), "</p>\n");
}

std::string HtmlList(const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string html = "<ul>\n";
  for (const std::string& text : texts) {
    absl::StrAppend(&html, "<li>", ForHtml(text), "</li>\n");
  }
  return html + "</ul>\n";
}

HtmlTable::HtmlTable(std::string_view name,
                     const std::vector<std::string_view>& titles) {
  html_ = absl::StrCat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
      name, "\"><table class=\"rows\"><thead><tr>");
  for (std::string_view title : titles) {
    styles_.push_back(title.starts_with('<')   ? " class=\"words\""
                      : title.starts_with('=') ? " class=\"words whole\""
                                               : "");
    if (!styles_.back().empty()) title.remove_prefix(1);
    titles_.push_back(title);
    absl::StrAppend(&html_, "<th scope=\"col\"", styles_.back(), ">", title,
                    "</th>");
  }
  html_ += "</tr></thead><tbody>\n";
}

void HtmlTable::Row(const std::vector<std::string>& cells) {
  html_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view tag = i == 0 ? "th scope=\"row\"" : "td";
    absl::StrAppend(&html_, "<", tag, styles_[i], " data-title=\"", titles_[i],
                    "\"><span>", cells[i], "</span></", tag.substr(0, 2), ">");
  }
  html_ += "</tr>\n";
}

std::string HtmlTable::Html() const {
  return html_ + "</tbody></table></div>\n";
}

}  // namespace hakmem::tools
