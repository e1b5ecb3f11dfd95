// The debug product.

#include "allocator/frontend/product.h"

namespace hakmem {
using TheProduct = Product<kDebug>;
}  // namespace hakmem

#include "allocator/frontend/c_symbols.inc"
#include "allocator/frontend/copy_symbols.inc"
#include "allocator/frontend/cpp_operators.inc"
#include "allocator/frontend/current_product.inc"
#include "allocator/frontend/jemalloc_symbols.inc"
#include "allocator/frontend/libc_symbols.inc"
#include "allocator/frontend/typed_symbols.inc"
