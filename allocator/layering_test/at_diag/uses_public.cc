#include "allocator/layering_test/at_diag/public.h"

namespace hakmem {
static_assert(kPublicConstant == 1);
}  // namespace hakmem
