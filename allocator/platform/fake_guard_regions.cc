// FakeVirtualMemory: memory that is closed.

#include "allocator/platform/fake_virtual_memory.h"

namespace hakmem {

VmStatus FakeVirtualMemory::ChangeGuard(Address address, std::size_t bytes,
                                        bool closed) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const VmStatus status =
      Do(VmCall::kProtect, address, bytes,
         closed ? &LinuxVirtualMemory::Close : &LinuxVirtualMemory::Open,
         kChangesNothing);
  if (!status.ok()) return status;
  if (closed) {
    guarded_.Add(address, address + bytes);
  } else {
    guarded_.Remove(address, address + bytes);
  }
  return status;
}

VmStatus FakeVirtualMemory::MapClosed(Address address, std::size_t bytes) {
  if (!has_guard_regions_) return Reserve(address, bytes);
  const VmStatus status = MapAt(address, bytes);
  return status.ok() ? ChangeGuard(address, bytes, /*closed=*/true) : status;
}

VmStatus FakeVirtualMemory::Close(Address address, std::size_t bytes) {
  return has_guard_regions_ ? ChangeGuard(address, bytes, /*closed=*/true)
                            : Protect(address, bytes);
}

VmStatus FakeVirtualMemory::Open(Address address, std::size_t bytes) {
  return has_guard_regions_ ? ChangeGuard(address, bytes, /*closed=*/false)
                            : Unprotect(address, bytes);
}

}  // namespace hakmem
