#include "allocator/layering_test/at_reports/public.h"

namespace hakmem {
static_assert(kPublicConstant == 1);
}  // namespace hakmem
