#include "tools/hakmem/profile_page.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kGraphHtml = R"html(
<div class="tools">
<label><span>Search</span> <input id="search" type="search" placeholder="text or regexp"></label>
<label><span>Focus</span> <input id="focus" type="search" placeholder="only stacks with …"></label>
<label><span>Ignore</span> <input id="ignore" type="search" placeholder="no stacks with …"></label>
<button id="reset" type="button">Reset</button>
<span id="found" role="status"></span><p id="about"></p>
</div>
<div class="parts">
<section aria-label="Flame graph">
<div class="head"><div id="legend" role="group" aria-label="Modules"></div></div>
<div id="graph" role="tree" tabindex="0" aria-label="Flame graph: callers above, what they call below"></div>
<div id="current"></div>
</section>
<section aria-label="Table">
<div class="head"><fieldset><legend class="hidden">Rows</legend>
<label class="choice"><input type="radio" name="table" value="places" checked>Places</label>
<label class="choice"><input type="radio" name="table" value="functions">Functions</label>
<label class="choice"><input type="radio" name="table" value="modules">Modules</label>
</fieldset><span id="count"></span></div>
<div id="table"></div>
</section>
</div>
<div id="tip" role="tooltip" hidden></div>
</div>
<section class="notes">
)html";

constexpr std::string_view kKeysHtml = R"html(
<p>A call is as wide as what was allocated in it and in all that it calls; its colour is its module's. Shares are of the
whole value, whatever is shown. Click a call to see it alone. Patterns look at functions, their places and libraries,
upper or lower case. Keys: <kbd>/</kbd> searches; in the graph <kbd>↑</kbd> caller, <kbd>↓</kbd> largest call, <kbd>←</kbd>
<kbd>→</kbd> beside, <kbd>Enter</kbd> alone, <kbd>Esc</kbd> everything. The address remembers what is shown.</p>
</section>
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

// Of functions compiled at run time the file's name (perf_map.h) has the
// process in it, so that it would have another colour each time.
std::string ModuleName(std::string_view module) {
  if (module.empty()) return "(no file)";
  module.remove_prefix(module.rfind('/') + 1);
  if (module.starts_with("perf-") && module.ends_with(".map")) {
    return "(compiled at run time)";
  }
  return ForTerminal(module);
}

}  // namespace

ProfilePage::ProfilePage(Head head) : head_(std::move(head)) {}

void ProfilePage::AddView(const PageView& view) { views_.push_back(view); }

std::size_t ProfilePage::FunctionIndex(const NamedCall& call) {
  const std::string name = ModuleName(call.module);
  const std::size_t module = Interned(module_index_, name, modules_, name);
  return Interned(function_index_, std::pair(call.function, module), functions_,
                  Json::array({ForTerminal(call.function), module}));
}

std::size_t ProfilePage::FrameIndex(const NamedCall& call) {
  const std::size_t function = FunctionIndex(call);
  std::string_view place = call.text;
  if (absl::ConsumePrefix(&place, call.function)) {
    absl::ConsumePrefix(&place, " at ");
  }
  return Interned(frame_index_, std::pair(function, std::string(place)),
                  frames_, Json::array({function, ForTerminal(place)}));
}

std::size_t ProfilePage::GroupIndex(const std::string& group) {
  return Interned(group_index_, group, groups_, ForTerminal(group));
}

void ProfilePage::AddSite(
    const std::string& group, const std::vector<NamedCall>& calls,
    const std::vector<std::optional<PageFigures>>& figures) {
  Json frames = Json::array();
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    frames.push_back(FrameIndex(*call));
  }
  Json views = Json::array();
  for (const std::optional<PageFigures>& of_view : figures) {
    Json numbers = 0;
    if (of_view.has_value()) {
      numbers = {of_view->bytes, std::llround(of_view->error_bytes)};
      for (const std::uint64_t number : of_view->columns) {
        numbers.push_back(number);
      }
    }
    views.push_back(std::move(numbers));
  }
  Json of_group = -1;
  if (!group.empty()) of_group = GroupIndex(group);
  sites_.push_back(
      Json::array({of_group, std::move(frames), std::move(views)}));
}

std::string ProfilePage::ViewsHtml() const {
  std::string html =
      "<noscript><p>The graph and its tables need the script in this file, and "
      "this browser runs none.</p></noscript>\n<div class=\"live\">\n"
      "<div class=\"views\"><fieldset><legend class=\"hidden\">Show</legend>\n";
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const PageView& view = views_[i];
    absl::StrAppend(&html, "<label class=\"choice\" title=\"",
                    ForHtml(view.about),
                    "\"><input type=\"radio\" name=\"view\" value=\"", i,
                    i == shown_ ? "\" checked>" : "\">", ForHtml(view.name),
                    " <b>", ForHtml(view.total), "</b> <span class=\"muted\">",
                    ForHtml(view.note), "</span></label>\n");
  }
  return html + "</fieldset></div>\n";
}

std::string ProfilePage::DataHtml() const {
  Json views = Json::array();
  for (const PageView& view : views_) {
    Json columns = Json::array();
    for (const PageColumn& column : view.columns) {
      columns.push_back({{"title", column.title}, {"bytes", column.is_bytes}});
    }
    views.push_back({{"name", view.name},
                     {"about", view.about},
                     {"sign", view.sign},
                     {"columns", std::move(columns)}});
  }
  const Json data = {{"views", std::move(views)}, {"modules", modules_},
                     {"functions", functions_},   {"frames", frames_},
                     {"groups", groups_},         {"sites", sites_}};
  return absl::StrCat("<script type=\"application/json\" id=\"data\">",
                      ForScript(data), "</script>\n<script>", kProfileScript,
                      "</script>\n");
}

std::string ProfilePage::Html() const {
  std::string html =
      absl::StrCat(PageHead({.title = head_.headline,
                             .more_style = kProfileStyle,
                             .script_hash = kProfileScriptHash}),
                   "<body>\n<header>\n<h1>", ForHtml(head_.headline), "</h1>\n",
                   HtmlParagraph("kicker", head_.command),
                   "</header>\n<main>\n", ViewsHtml(), kGraphHtml);
  for (const std::string& paragraph : head_.paragraphs) {
    html += HtmlParagraph("", paragraph);
  }
  absl::StrAppend(&html, kKeysHtml, after_, "</main>\n", DataHtml(),
                  "</body>\n</html>\n");
  return html;
}

}  // namespace hakmem::tools
