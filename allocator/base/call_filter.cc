#include "allocator/base/call_filter.h"

namespace hakmem {

constinit std::atomic<Filter> g_filter{Filter::kUnknown};

}  // namespace hakmem
