#include "allocator/platform/single_threaded.h"

#include <elf.h>

#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/platform/auxiliary_vector.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace hakmem {

bool IsSingleThreaded() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

bool MayOpenFiles() {
  // A frame further below the top of the first stack may be near its end.
  constexpr std::uintptr_t kMostFirstStackBytes = 1 * kMiB;
  // The kernel has put these bytes above all frames.
  const std::uintptr_t top = AuxiliaryValue(AT_RANDOM);
  const auto here =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return top - here < kMostFirstStackBytes && IsSingleThreaded();
}

}  // namespace hakmem
