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

void* NothrowNewSlow(std::size_t size, Call call, bool aligned,
                     std::size_t alignment) noexcept {
  const bool array = call == Call::kNewArrayNothrow;
  if (!ProductOwnsNew(array, aligned) && CanCatch()) {
    const auto given = static_cast<std::align_val_t>(alignment);
    try {
      if (!aligned)
        return array ? ::operator new[](size) : ::operator new(size);
      return array ? ::operator new[](size, given)
                   : ::operator new(size, given);
    } catch (...) {
      return nullptr;
    }
  }
  return IsPowerOfTwo(alignment)
             ? ProductNewOrNull(size, alignment, call, aligned)
             : NullForAlignment(size, alignment, call);
}

}  // namespace hakmem
