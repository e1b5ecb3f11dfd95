// A set of addresses as maximal ranges, for FakeVirtualMemory.
//
// Owns: the ranges. Called by: FakeVirtualMemory.
// Thread-safety: an object belongs to one thread.
//
// Invariants:
//   FS1: ranges are not empty and neither overlap nor touch.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FAKE_RANGE_SET_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FAKE_RANGE_SET_H_

#include <cstddef>
#include <map>

#include "allocator/base/units.h"

namespace hakmem {

class FakeRangeSet {
 public:
  void Add(Address begin, Address end);
  void Remove(Address begin, Address end);

  bool ContainsAll(Address begin, Address end) const;
  bool ContainsAny(Address begin, Address end) const;
  std::size_t count() const { return ranges_.size(); }
  std::size_t bytes() const;
  const std::map<Address, Address>& ranges() const { return ranges_; }

 private:
  // From first address to first address beyond.
  std::map<Address, Address> ranges_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FAKE_RANGE_SET_H_
