#include "allocator/layering_test/at_reports/private.h"

namespace hakmem {
static_assert(kPrivateConstant == 1);
}  // namespace hakmem
