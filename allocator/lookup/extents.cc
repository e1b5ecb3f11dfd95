#include "allocator/lookup/extents.h"

namespace hakmem {

// False: it is in no slab of the coarse zone.
HAK_ALWAYS_INLINE bool ExtentFinder::FindPool(Address address,
                                              BlockExtent& extent) const {
  const Zone& coarse = ace_.region().coarse();
  if (!coarse.Contains(address)) return false;
  const UnitIndex unit = coarse.UnitOf(address);
  const UnitRecord record =
      coarse.unit_record(unit).load(std::memory_order_relaxed);
  if (record == 0 || record == kSpanRecord) return false;
  extent = InSlab<false>(coarse, address, unit, record);
  return true;
}

BlockExtent ExtentFinder::Find(Address address) const {
  BlockExtent extent;
  if (FindTiny(address, extent) || FindPool(address, extent)) return extent;
  return FindLarge(address);
}

bool ExtentFinder::Allows(Address address, std::size_t bytes) const {
  BlockExtent extent;
  if (FindTiny(address, extent) || FindPool(address, extent)) {
    return extent.Allows(address, bytes);
  }
  return LargeAllows(address, bytes);
}

bool ExtentFinder::LargeAllows(Address address, std::size_t bytes) const {
  return FindLarge(address).Allows(address, bytes);
}

// A program that fills a long block piece by piece would walk back through all
// of it each time, were it not for the hint.
BlockExtent ExtentFinder::FindLarge(Address address) const {
  std::atomic<Address>& hint = HintOf(address);
  const BlockExtent hinted =
      InLarge(hint.load(std::memory_order_relaxed), address);
  if (hinted.state == BlockExtent::State::kLive) return hinted;
  const Address start = LargeStart(ace_, address);
  if (start == 0) return {};
  hint.store(start, std::memory_order_relaxed);
  return InLarge(start, address);
}

BlockExtent ExtentFinder::InLarge(Address start, Address address) const {
  const LargeBlock large = LargeAt(ace_, start);
  if (address - start >= large.bytes) return {};
  return {BlockExtent::State::kLive, start, large.requested_bytes};
}

}  // namespace hakmem
