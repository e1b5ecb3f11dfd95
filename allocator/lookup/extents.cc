#include "allocator/lookup/extents.h"

namespace hakmem {

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

// A program that fills a long block piece by piece, or several in turn, would
// walk back through all of it each time, were it not for the hints.
BlockExtent ExtentFinder::FindLarge(Address address) const {
  std::atomic<Address>& hint = HintOf(address);
  std::atomic<Address>& far_hint = FarHintOf(address);
  Address start = hint.load(std::memory_order_relaxed);
  BlockExtent extent = InLarge(start, address);
  if (extent.state == BlockExtent::State::kLive) return extent;
  start = far_hint.load(std::memory_order_relaxed);
  extent = InLarge(start, address);
  if (extent.state != BlockExtent::State::kLive) {
    start = LargeStart(ace_, address);
    extent = InLarge(start, address);
    if (extent.state != BlockExtent::State::kLive) return extent;
    far_hint.store(start, std::memory_order_relaxed);
  }
  hint.store(start, std::memory_order_relaxed);
  return extent;
}

BlockExtent ExtentFinder::InLarge(Address start, Address address) const {
  const LargeBlock large = LargeAt(ace_, start);
  if (address - start >= large.bytes) return {};
  return {BlockExtent::State::kLive, start, large.requested_bytes};
}

}  // namespace hakmem
