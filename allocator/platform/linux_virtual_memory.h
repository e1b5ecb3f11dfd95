// VirtualMemory on Linux's mmap, munmap, madvise and mremap, by number, but for
// what tells of memory that goes back (libc_functions.h).
//
// Owns: the count of HAKMEM_FAIL_NTH. Called by: frontend (which makes the one
// instance) and tests. Thread-safety: any thread. Usable before libc is
// initialised.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_
#define HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/platform/virtual_memory.h"

namespace hakmem {

class LinuxVirtualMemory final : public VirtualMemory {
 public:
  constexpr LinuxVirtualMemory() = default;

  // Refuses the nth call from now on that asks for memory (MapAt, Move) with
  // ENOMEM, and with `from_then_on` every later one. 0: none. Before other
  // threads call.
  void FailNth(std::uint64_t nth, bool from_then_on);

  std::size_t PageBytes() const override;
  VmStatus MapAt(Address address, std::size_t bytes) override;
  VmStatus MapBlock(Address address, std::size_t bytes) override;
  VmStatus Reserve(Address address, std::size_t bytes) override;
  VmStatus Protect(Address address, std::size_t bytes) override;
  VmStatus Unprotect(Address address, std::size_t bytes) override;
  VmStatus MapClosed(Address address, std::size_t bytes) override;
  VmStatus Close(Address address, std::size_t bytes) override;
  VmStatus Open(Address address, std::size_t bytes) override;
  bool ClosingSplits() const override {
    return guard_regions_.load(std::memory_order_relaxed) != kHad;
  }
  VmStatus FindResident(Address address, std::size_t bytes,
                        unsigned char* resident) override;
  std::size_t MaxMappings() override;
  bool IsTaken(Address address, std::size_t bytes) override;
  VmStatus Unmap(Address address, std::size_t bytes) override;
  VmStatus Purge(Address address, std::size_t bytes) override;
  void AskForHugePages(Address address, std::size_t bytes) override;
  void DeclineHugePages(Address address, std::size_t bytes) override;
  void Populate(Address address, std::size_t bytes) override;
  VmStatus Move(Address from, Address to, std::size_t bytes,
                bool keep_source) override;
  VmStatus Renew(Address address, std::size_t bytes) override;
  std::uint64_t Random() override {
    std::uint64_t word = 0;
    FillRandom(&word, 1);
    return word;
  }
  void FillRandom(std::uint64_t* words, std::size_t count) override;
  std::uint64_t NowMs() override;
  AddressRange RegionRange() const override;

 private:
  // Bits: the kernel has closed pages without a mapping of their own; it has
  // none of that, or no more.
  enum GuardRegions : std::uint8_t { kHad = 1, kRefused = 2 };
  // What became of memory that was given back.
  enum class Taking : std::uint8_t { kUnknown, kPages, kNone };

  bool TakesPagesBack();
  bool MayAllBeLocked();
  bool IsRefusedByOrder();
  VmStatus MapNew(Address address, std::size_t bytes, int how, int protection);
  VmStatus ReadPageMap(Address address, std::size_t bytes,
                       unsigned char* resident);

  bool MayHaveGuardRegions() const {
    return (guard_regions_.load(std::memory_order_relaxed) & kRefused) == 0;
  }
  bool AddGuardRegion(Address address, std::size_t bytes);

  std::uint64_t fail_nth_ = 0;
  bool fail_from_then_on_ = false;
  // Found out by the first that gives memory back; written and read by all that
  // do.
  std::atomic<Taking> taking_{Taking::kUnknown};
  // Found out by the first that closes memory; written and read by all that do.
  std::atomic<std::uint8_t> guard_regions_{0};
  // The kernel tells by a refusal whether a place is taken. Found out by the
  // first that asks; written and read by all that do.
  std::atomic<bool> tells_of_taken_{false};
  // Something was closed by its mapping's access instead.
  std::atomic<bool> closed_by_access_{false};
  // Whoever finds first that locked memory cannot be given back tells of it.
  std::atomic<bool> told_of_locked_{false};
  // Calls that asked for memory, while fail_nth_ is not 0: added to by every
  // thread that makes one.
  std::atomic<std::uint64_t> asked_{0};
};

// The size that an object must fill and be aligned to, to be sealed: the
// largest page that kernels for the processor have.
#if defined(__aarch64__)
inline constexpr std::size_t kSealedBytes = 65536;
#else
inline constexpr std::size_t kSealedBytes = 4096;
#endif
// Makes an object of the program's own data read-only for good. False: it is
// not, because the kernel refused or has larger pages.
bool SealObject(const void* object, std::size_t bytes);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_LINUX_VIRTUAL_MEMORY_H_
