#include "allocator/base/bits.h"

namespace hakmem {
static_assert(IsPowerOfTwo(16U));
}  // namespace hakmem
