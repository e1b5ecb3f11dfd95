#include "allocator/platform/fake_range_set.h"

#include <algorithm>
#include <iterator>

namespace hakmem {

void FakeRangeSet::Add(Address begin, Address end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
  // All that overlap or touch become one.
  while (at != ranges_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace(begin, end);
}

void FakeRangeSet::Remove(Address begin, Address end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const auto [old_begin, old_end] = *at;
    at = ranges_.erase(at);
    if (old_begin < begin) ranges_.emplace(old_begin, begin);
    if (end < old_end) ranges_.emplace(end, old_end);
  }
}

bool FakeRangeSet::ContainsAll(Address begin, Address end) const {
  const auto after = ranges_.upper_bound(begin);
  return after != ranges_.begin() && std::prev(after)->second >= end;
}

bool FakeRangeSet::ContainsAny(Address begin, Address end) const {
  const auto after = ranges_.lower_bound(end);
  return after != ranges_.begin() && std::prev(after)->second > begin;
}

std::size_t FakeRangeSet::bytes() const {
  std::size_t sum = 0;
  for (const auto& [begin, end] : ranges_) sum += end - begin;
  return sum;
}

}  // namespace hakmem
