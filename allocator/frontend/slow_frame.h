// The frame of a slow half, with which the call stack of a failure begins.
//
// Owns: nothing. Called by: c_symbols.inc, cpp_operators.inc.
// Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_SLOW_FRAME_H_
#define HAKMEM_ALLOCATOR_FRONTEND_SLOW_FRAME_H_

#include "allocator/base/compiler.h"

namespace hakmem {

// A temporary, made as an argument of the call that resolves a request. With
// `kIsKept`, for a slow half that may have something left to do then, it is the
// address of its frame, which is there until the call returns. Otherwise null,
// and the call may be the half's last.
template <bool kIsKept>
class SlowFrame {
 public:
  HAK_ALWAYS_INLINE ~SlowFrame() {
    if constexpr (kIsKept) HAK_COMES_BY();
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  HAK_ALWAYS_INLINE operator const void*() const {
    return kIsKept ? __builtin_frame_address(0) : nullptr;
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_SLOW_FRAME_H_
