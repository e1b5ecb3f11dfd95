#include "tools/hakmem/profile_page.h"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kGraphHtml = R"html(
<noscript><p>The graph and its tables need the script in this file, and this browser runs none.</p></noscript>
<div class="live">
<p id="about"></p>
<div class="tools">
<label>Find <input id="search" type="search" placeholder="part of a function's name" autocomplete="off"
  spellcheck="false"></label>
<button id="whole" type="button">Show everything</button>
<span id="found" class="muted" role="status"></span>
</div>
<div class="parts">
<section aria-labelledby="graph-title">
<h2 id="graph-title">Flame graph</h2>
<p id="current"></p>
<div id="graph" role="tree" tabindex="0" aria-label="Flame graph: callers above, what they call below"></div>
<p class="muted keys">A call is as wide as what was allocated in it and in all that it calls. Click one to see it
alone. Keys: <kbd>/</kbd> finds; in the graph <kbd>↑</kbd> caller, <kbd>↓</kbd> largest call, <kbd>←</kbd>
<kbd>→</kbd> beside, <kbd>Enter</kbd> alone, <kbd>Esc</kbd> everything.</p>
</section>
<section aria-label="Tables">
<h2>By places</h2>
<div id="places"></div>
<section>
<h2>By functions</h2>
<div id="functions"></div>
</section>
</section>
</div>
</div>
)html";

// JSON for the inside of a script element: nothing in it ends that.
std::string ForScript(const nlohmann::ordered_json& json) {
  return absl::StrReplaceAll(
      json.dump(-1, ' ', true,
                nlohmann::ordered_json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

// The index of `key`; `list` gets `value` if it is new.
template <typename Key>
std::size_t Interned(std::map<Key, std::size_t>& index, const Key& key,
                     nlohmann::ordered_json& list,
                     nlohmann::ordered_json value) {
  const auto [found, is_new] = index.try_emplace(key, list.size());
  if (is_new) list.push_back(std::move(value));
  return found->second;
}

}  // namespace

ProfilePage::ProfilePage(Head head) : head_(std::move(head)) {}

void ProfilePage::AddView(const PageView& view) { views_.push_back(view); }

std::size_t ProfilePage::NameIndex(const std::string& name) {
  return Interned(name_index_, name, names_, ForTerminal(name));
}

std::size_t ProfilePage::FrameIndex(const NamedCall& call) {
  const std::size_t name = NameIndex(call.function);
  return Interned(frame_index_, std::pair(call.function, call.text), frames_,
                  Json::array({name, ForTerminal(call.text)}));
}

std::size_t ProfilePage::GroupIndex(const std::string& group) {
  return Interned(group_index_, group, groups_, ForTerminal(group));
}

void ProfilePage::AddSite(
    const std::string& group, const std::vector<NamedCall>& calls,
    const std::vector<std::optional<PageFigures>>& figures) {
  Json site;
  if (!group.empty()) site["group"] = GroupIndex(group);
  site["frames"] = Json::array();
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    site["frames"].push_back(FrameIndex(*call));
  }
  site["figures"] = Json::array();
  for (const std::optional<PageFigures>& of_view : figures) {
    Json numbers;
    if (of_view.has_value()) {
      numbers = {of_view->bytes, of_view->error_bytes};
      for (const std::uint64_t number : of_view->columns) {
        numbers.push_back(number);
      }
    }
    site["figures"].push_back(std::move(numbers));
  }
  sites_.push_back(std::move(site));
}

std::string ProfilePage::ViewsHtml() const {
  std::string html = "<fieldset class=\"live\"><legend>Show</legend>\n";
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const PageView& view = views_[i];
    absl::StrAppend(&html,
                    "<label class=\"view\"><input type=\"radio\" "
                    "name=\"view\" value=\"",
                    i, i == shown_ ? "\" checked>" : "\">", ForHtml(view.name),
                    "<b>", ForHtml(view.total), "</b><span class=\"muted\">",
                    ForHtml(view.note), "</span></label>\n");
  }
  return html + "</fieldset>\n";
}

std::string ProfilePage::DataHtml() const {
  Json views = Json::array();
  for (const PageView& view : views_) {
    Json columns = Json::array();
    for (const PageColumn& column : view.columns) {
      columns.push_back({{"title", column.title}, {"bytes", column.is_bytes}});
    }
    views.push_back({{"about", view.about},
                     {"sign", view.sign},
                     {"cool", view.is_cool},
                     {"columns", std::move(columns)}});
  }
  const Json data = {{"views", std::move(views)},
                     {"names", names_},
                     {"frames", frames_},
                     {"groups", groups_},
                     {"sites", sites_}};
  return absl::StrCat("<script type=\"application/json\" id=\"data\">",
                      ForScript(data), "</script>\n<script>", kProfileScript,
                      "</script>\n");
}

std::string ProfilePage::Html() const {
  std::string html =
      absl::StrCat(PageHead({.title = head_.headline,
                             .more_style = kProfileStyle,
                             .script_hash = kProfileScriptHash}),
                   "<body>\n<header>\n", HtmlParagraph("kicker", head_.command),
                   "<h1>", ForHtml(head_.headline), "</h1>\n");
  for (const std::string& paragraph : head_.paragraphs) {
    html += HtmlParagraph("", paragraph);
  }
  absl::StrAppend(&html, "</header>\n<main>\n", before_, ViewsHtml(),
                  kGraphHtml, after_, "</main>\n", DataHtml(),
                  "</body>\n</html>\n");
  return html;
}

}  // namespace hakmem::tools
