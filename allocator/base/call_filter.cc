#include "allocator/base/call_filter.h"

namespace hakmem {

constinit std::atomic<bool> g_filter_noted{false};

}  // namespace hakmem
