// A page of the report, read as strictly as it is written.
//
// Owns: nothing. Called by: explain_fuzz. Thread-safety: one thread.
//
// Invariants:
//   HP1: tags and attributes are those that the report writes, values are in
//       quotes, and elements end in the order in which they began. So what a
//       trace says is no markup.
#ifndef HAKMEM_FUZZ_HTML_PAGE_H_
#define HAKMEM_FUZZ_HTML_PAGE_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "allocator/base/check.h"

namespace hakmem::tools {

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view text) : rest_(text) {}

  void Check() {
    HAK_CHECK(Skip("<!DOCTYPE html>"));
    while (!rest_.empty()) {
      if (rest_.starts_with('<')) {
        Tag();
      } else {
        Character();
      }
    }
    HAK_CHECK(open_.empty());
  }

 private:
  static constexpr std::string_view kTags[] = {
      "a",       "body",  "code",       "dd",     "details", "div",
      "dl",      "dt",    "figcaption", "figure", "h1",      "h2",
      "h3",      "head",  "header",     "html",   "li",      "link",
      "main",    "meta",  "ol",         "p",      "path",    "pre",
      "section", "span",  "strong",     "style",  "summary", "svg",
      "table",   "tbody", "td",         "th",     "thead",   "title",
      "tr",      "ul"};
  static constexpr std::string_view kAttributes[] = {"aria-hidden",
                                                     "aria-label",
                                                     "charset",
                                                     "class",
                                                     "content",
                                                     "d",
                                                     "data-title",
                                                     "href",
                                                     "http-equiv",
                                                     "id",
                                                     "lang",
                                                     "name",
                                                     "preserveAspectRatio",
                                                     "rel",
                                                     "role",
                                                     "scope",
                                                     "style",
                                                     "tabindex",
                                                     "title",
                                                     "viewBox"};

  bool Skip(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }

  // Which of `names` comes next, up to one of `ends`.
  template <std::size_t kCount>
  std::string_view Name(const std::string_view (&names)[kCount],
                        const char* ends) {
    const std::string_view name = rest_.substr(0, rest_.find_first_of(ends));
    HAK_CHECK(std::find(std::begin(names), std::end(names), name) !=
              std::end(names));
    rest_.remove_prefix(name.size());
    return name;
  }

  void Character() {
    if (!Skip("&")) {
      rest_.remove_prefix(1);
      return;
    }
    HAK_CHECK(Skip("amp;") || Skip("lt;") || Skip("gt;") || Skip("quot;") ||
              Skip("#39;"));
  }

  void Tag() {
    if (Skip("</")) {
      HAK_CHECK(!open_.empty() && Name(kTags, ">") == open_.back());
      open_.pop_back();
      HAK_CHECK(Skip(">"));
      return;
    }
    HAK_CHECK(Skip("<"));
    const std::string_view name = Name(kTags, " />");
    while (Skip(" ")) {
      Name(kAttributes, "=");
      HAK_CHECK(Skip("=\""));
      while (!Skip("\"")) {
        HAK_CHECK(!rest_.empty() && rest_.front() != '<');
        Character();
      }
    }
    if (Skip("/>")) return;
    HAK_CHECK(Skip(">"));
    if (name != "meta" && name != "link") open_.push_back(name);
  }

  std::string_view rest_;
  std::vector<std::string_view> open_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_FUZZ_HTML_PAGE_H_
