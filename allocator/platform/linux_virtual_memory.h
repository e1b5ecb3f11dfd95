// VirtualMemory on Linux's mmap, munmap, madvise and mremap.
//
// Owns: nothing. Called by: frontend (which makes the one instance) and tests.
// Thread-safety: any thread. Usable before libc is initialised.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_
#define HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_

#include "allocator/platform/virtual_memory.h"

namespace hakmem {

class LinuxVirtualMemory final : public VirtualMemory {
 public:
  constexpr LinuxVirtualMemory() = default;

  std::size_t PageBytes() const override;
  VmStatus MapAt(Address address, std::size_t bytes) override;
  bool IsTaken(Address address, std::size_t bytes) override;
  VmStatus Unmap(Address address, std::size_t bytes) override;
  VmStatus Purge(Address address, std::size_t bytes) override;
  void AskForHugePages(Address address, std::size_t bytes) override;
  void Populate(Address address, std::size_t bytes) override;
  VmStatus Move(Address from, Address to, std::size_t bytes,
                bool keep_source) override;
  std::uint64_t Random() override;
  std::uint64_t NowMs() override;
  AddressRange RegionRange() const override;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_
