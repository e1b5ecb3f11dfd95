// The slow halves of the nothrow forms of operator new. As the standard has it,
// each form calls the throwing one when the program has replaced that, and
// turns an exception into null; our own throwing forms are not called only to
// have them throw.
//
// Compiled with exceptions. The symbols that this needs of a C++ runtime are
// weak, so that hakmem depends on libc alone. When the runtime is not visible
// to hakmem (a plugin loaded it privately), nothing can be caught: then nothing
// is thrown either, unless a new-handler of the program does.

#include <cstddef>
#include <new>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/new_handler.h"
#include "allocator/frontend/weak_runtime.h"

namespace hakmem {
namespace {

// `throwing_new` is a throwing form of the program's, called with its
// arguments.
template <typename ThrowingNew>
void* NullIfThrown(ThrowingNew throwing_new) noexcept {
  try {
    return throwing_new();
  } catch (...) {
    return nullptr;
  }
}

// Whether to call the program's own form.
bool ServedByProgram(bool ours) { return !ours && CanCatch(); }

void* Ours(Call call, std::size_t size) {
  return ProductNewOrNull(size, kMinAlignmentBytes, call, /*aligned=*/false);
}

void* OursAligned(Call call, std::size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<std::size_t>(alignment);
  return IsPowerOfTwo(bytes)
             ? ProductNewOrNull(size, bytes, call, /*aligned=*/true)
             : NullForAlignment(size, bytes, call);
}

}  // namespace

void* NothrowNewSlow(std::size_t size) noexcept {
  if (ServedByProgram(ProductOwnsNew())) {
    return NullIfThrown([=] { return ::operator new(size); });
  }
  return Ours(Call::kNewNothrow, size);
}

void* NothrowNewArraySlow(std::size_t size) noexcept {
  if (ServedByProgram(ProductOwnsNewArray())) {
    return NullIfThrown([=] { return ::operator new[](size); });
  }
  return Ours(Call::kNewArrayNothrow, size);
}

void* NothrowNewAlignedSlow(std::size_t size,
                            std::align_val_t alignment) noexcept {
  if (ServedByProgram(ProductOwnsNewAligned())) {
    return NullIfThrown([=] { return ::operator new(size, alignment); });
  }
  return OursAligned(Call::kNewNothrow, size, alignment);
}

void* NothrowNewArrayAlignedSlow(std::size_t size,
                                 std::align_val_t alignment) noexcept {
  if (ServedByProgram(ProductOwnsNewArrayAligned())) {
    return NullIfThrown([=] { return ::operator new[](size, alignment); });
  }
  return OursAligned(Call::kNewArrayNothrow, size, alignment);
}

}  // namespace hakmem
