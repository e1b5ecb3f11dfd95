// The way by which a block is served.
//
// Owns: nothing. Called by: every layer that counts or names it.
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

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_ROUTE_H_
