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

int FailWith(int error_number) {
  errno = error_number;
  return error_number;
}

}  // namespace hakmem
