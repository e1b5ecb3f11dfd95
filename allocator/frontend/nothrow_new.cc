// The nothrow forms of operator new. As the standard has it, each calls the
// throwing form, which the program may have replaced, and turns an exception
// into null.
//
// The one file compiled with exceptions. What that needs of a C++ runtime is
// weak, so that hakmem depends on libc alone. When the runtime is not visible
// to hakmem (a plugin loaded it privately), nothing can be caught: then nothing
// is thrown either, unless a new-handler of the program does.

#include <cstddef>
#include <new>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/frontend/current_product.h"

// The compiler itself makes the references to these.
__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak _ZSt9terminatev\n"
    ".weak _Unwind_Resume\n");
extern "C" HAK_WEAK void* HakBeginCatch(void*) __asm__("__cxa_begin_catch");

namespace hakmem {
namespace {

// `throwing_new` is a throwing form called with its arguments.
template <typename ThrowingNew>
void* NullIfThrown(ThrowingNew throwing_new, std::size_t size,
                   std::size_t alignment) noexcept {
  if (&HakBeginCatch == nullptr) {
    return IsPowerOfTwo(alignment) ? ProductNewOrNull(size, alignment)
                                   : nullptr;
  }
  try {
    return throwing_new();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace
}  // namespace hakmem

HAK_EXPORT HAK_WEAK void* operator new(std::size_t size,
                                       const std::nothrow_t&) noexcept {
  return hakmem::NullIfThrown([=] { return ::operator new(size); }, size,
                              hakmem::kMinAlignmentBytes);
}

HAK_EXPORT HAK_WEAK void* operator new[](std::size_t size,
                                         const std::nothrow_t&) noexcept {
  return hakmem::NullIfThrown([=] { return ::operator new[](size); }, size,
                              hakmem::kMinAlignmentBytes);
}

HAK_EXPORT HAK_WEAK void* operator new(std::size_t size,
                                       std::align_val_t alignment,
                                       const std::nothrow_t&) noexcept {
  return hakmem::NullIfThrown([=] { return ::operator new(size, alignment); },
                              size, static_cast<std::size_t>(alignment));
}

HAK_EXPORT HAK_WEAK void* operator new[](std::size_t size,
                                         std::align_val_t alignment,
                                         const std::nothrow_t&) noexcept {
  return hakmem::NullIfThrown([=] { return ::operator new[](size, alignment); },
                              size, static_cast<std::size_t>(alignment));
}
