#include "allocator/core/failed_call.h"

#include "allocator/base/units.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

void DescribeRequest(const RefusedCall& request, FailureEvent& event) {
  event.size_bytes = request.size_bytes;
  event.alignment_bytes = request.alignment_bytes;
  event.count = request.count;
  std::size_t bytes = request.size_bytes;
  if (request.count != 0 &&
      __builtin_mul_overflow(request.count, request.size_bytes, &bytes)) {
    event.route = Route::kHuge;
    return;
  }
  if (bytes <= kMaxPoolBytes && request.alignment_bytes <= kMaxPoolBytes) {
    const SizeClass size_class = AlignedClassOf(bytes, request.alignment_bytes);
    event.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
    event.class_bytes = ClassBytes(size_class);
  } else if (bytes <= kMaxSpanBytes &&
             request.alignment_bytes <= kMaxSpanBytes) {
    event.route = Route::kSpan;
  } else {
    event.route = Route::kHuge;
  }
}

}  // namespace hakmem
