// The family of functions that a block was allocated by, and has to be freed
// by.
//
// Owns: nothing. Called by: every layer that keeps or names it.
// Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_BASE_BLOCK_KIND_H_
#define HAKMEM_ALLOCATOR_BASE_BLOCK_KIND_H_

#include <cstdint>

namespace hakmem {

enum class BlockKind : std::uint8_t {
  kMalloc,  // and all other functions of C
  kNew,
  kNewArray,
  kAlignedNew,
  kAlignedNewArray,
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_BLOCK_KIND_H_
