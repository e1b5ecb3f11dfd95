// One page of flame graphs and tables of call sites, without network: its data,
// script and style are in it, and its policy lets nothing else run.
//
// The script is in page/*.js. Names are whatever a program has put there: they
// reach the page as JSON, and the script makes text of them, never HTML.
#ifndef HAKMEM_TOOLS_HAKMEM_PROFILE_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_PROFILE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/hakmem/frame_policy.h"

namespace hakmem::tools {

// Made by page/assets.py.
extern const std::string_view kProfileStyle;
extern const std::string_view kProfileScript;
extern const std::string_view kProfileScriptHash;

// A number that each site has in a view, beside its bytes.
struct PageColumn {
  std::string title;
  bool is_bytes = false;
};

// One flame graph, with its tables.
struct PageView {
  std::string name;   // "live"
  std::string total;  // "4.0 MiB"
  std::string note;   // "±25%"
  std::string about;  // a sentence: which bytes these are
  // "+" or "-" before each number of bytes, and red or blue in place of the
  // modules' colours; the values without one are shown side by side.
  std::string sign = {};
  std::vector<PageColumn> columns = {};
};

struct PageFigures {
  std::uint64_t bytes = 0;
  double error_bytes = 0;
  std::vector<std::uint64_t> columns;
};

class ProfilePage {
 public:
  struct Head {
    std::string command;   // "hakmem heap: who holds memory"
    std::string headline;  // "server[77] holds 4.0 MiB"
    std::vector<std::string> paragraphs;
  };

  explicit ProfilePage(Head head);

  void AddView(const PageView& view);
  // Which view is shown first; the first one if nobody says.
  void Show(std::size_t view) { shown_ = view; }

  // `group` is a process when there are several, or empty; `calls` begin with
  // the innermost; `figures` has one element for each view, empty where the
  // site has nothing in it.
  void AddSite(const std::string& group, const std::vector<NamedCall>& calls,
               const std::vector<std::optional<PageFigures>>& figures);

  // HTML below the graph.
  void AddAfter(std::string_view html) { after_ += html; }

  std::string Html() const;

 private:
  using Json = nlohmann::ordered_json;

  std::size_t FunctionIndex(const NamedCall& call);
  std::size_t FrameIndex(const NamedCall& call);
  std::size_t GroupIndex(const std::string& group);
  std::string ViewsHtml() const;
  std::string DataHtml() const;

  Head head_;
  std::vector<PageView> views_;
  std::size_t shown_ = 0;
  std::string after_;
  Json sites_ = Json::array();
  Json modules_ = Json::array();
  Json functions_ = Json::array();
  Json frames_ = Json::array();
  Json groups_ = Json::array();
  std::map<std::string, std::size_t> module_index_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> function_index_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> frame_index_;
  std::map<std::string, std::size_t> group_index_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROFILE_PAGE_H_
