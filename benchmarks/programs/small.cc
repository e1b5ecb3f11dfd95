// For a compiler: a few templates of the standard library at work.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

template <typename Map>
int Most(const std::vector<std::string>& words) {
  Map counts;
  for (const auto& word : words) ++counts[word];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted.empty() ? 0 : sorted.front().second;
}

int MostOfBoth(const std::vector<std::string>& words) {
  return Most<std::map<std::string, int>>(words) +
         Most<std::unordered_map<std::string, int>>(words);
}
