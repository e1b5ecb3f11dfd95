// How a block came to be: the way by which it is served, and the family of
// functions that allocated it.
//
// Owns: nothing. Called by: every layer that counts, keeps or names these.
// Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_BASE_ROUTE_H_
#define HAKMEM_ALLOCATOR_BASE_ROUTE_H_

#include <cstdint>

namespace hakmem {

enum class Route : std::uint8_t { kTiny, kPool, kSpan, kHuge };
inline constexpr unsigned kRouteCount = 4;

constexpr const char* RouteName(Route route) {
  constexpr const char* kNames[kRouteCount] = {"tiny", "pool", "span", "huge"};
  return kNames[static_cast<unsigned>(route)];
}

// The block has to be freed by the same family.
enum class BlockKind : std::uint8_t {
  kMalloc,  // and all other functions of C
  kNew,
  kNewArray,
  kAlignedNew,
  kAlignedNewArray,
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_ROUTE_H_
