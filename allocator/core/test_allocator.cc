#include "allocator/core/test_allocator.h"

namespace hakmem {

template class Allocator<kRelease>;
template class Allocator<kTracing>;
template class Allocator<kHardened>;
template class Allocator<kDebug>;

}  // namespace hakmem
