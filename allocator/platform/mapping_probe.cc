#include "allocator/platform/mapping_probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/platform/errno_guard.h"

namespace hakmem {

bool MappingsUsedUp() {
  const ErrnoGuard guard;
  const auto page = static_cast<std::size_t>(getpagesize());
  // A page that is in use: this code's. The usual answer is EEXIST.
  const auto here = reinterpret_cast<std::uintptr_t>(&MappingsUsedUp);
  void* const got = mmap(
      reinterpret_cast<void*>(here & ~(page - 1)), page, PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return errno == ENOMEM;
  // Linux before 4.17 has taken the address for a hint.
  munmap(got, page);
  return false;
}

}  // namespace hakmem
