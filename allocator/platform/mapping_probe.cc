#include "allocator/platform/mapping_probe.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/base/system_call.h"
#include "allocator/platform/auxiliary_vector.h"

namespace hakmem {

bool MappingsUsedUp() {
  const std::size_t page = KernelPageBytes();
  // A page that is in use: this code's. The usual answer is EEXIST.
  const auto here = reinterpret_cast<std::uintptr_t>(&MappingsUsedUp);
  constexpr unsigned long kNoFile = ~0UL;
  const long got = SystemCall(
      SYS_mmap, here & ~(page - 1), page, PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
      kNoFile, 0);
  if (const int error = ErrorOf(got); error != 0) return error == ENOMEM;
  // Linux before 4.17 has taken the address for a hint.
  SystemCall(SYS_munmap, got, page);
  return false;
}

bool AddressesUsedUp(std::size_t bytes) {
  constexpr unsigned long kNoFile = ~0UL;
  const long got =
      SystemCall(SYS_mmap, 0, bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, kNoFile, 0);
  if (const int error = ErrorOf(got); error != 0) return error == ENOMEM;
  SystemCall(SYS_munmap, got, bytes);
  return false;
}

std::uint64_t SoftLimit(int resource) {
  rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = 0};
  SystemCall(SYS_prlimit64, 0, resource, 0, &limit);
  return limit.rlim_cur;
}

}  // namespace hakmem
