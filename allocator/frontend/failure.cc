#include "allocator/frontend/failure.h"

#include <cerrno>

namespace hakmem {

void* FailWithNoMemory() {
  errno = ENOMEM;
  return nullptr;
}

void* FailWithInvalid() {
  errno = EINVAL;
  return nullptr;
}

}  // namespace hakmem
