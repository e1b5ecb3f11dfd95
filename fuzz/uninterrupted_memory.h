// The fake kernel for several threads that the baton interleaves.
//
// Owns: nothing. Called by: cross_thread_free_fuzz. Thread-safety: as
// FakeVirtualMemory; whoever is inside keeps the turn.
#ifndef HAKMEM_FUZZ_UNINTERRUPTED_MEMORY_H_
#define HAKMEM_FUZZ_UNINTERRUPTED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "fuzz/baton.h"

namespace hakmem {

// A call of the kernel: others may go on before it.
struct BeforeKernel {
  BeforeKernel() { Baton::Point(); }
};
struct Kernel : private BeforeKernel {
  const Baton::Outside outside;
};

// The fake kernel has a lock that the scheduler knows nothing of.
class UninterruptedMemory final : public VirtualMemory {
 public:
  explicit UninterruptedMemory(FakeVirtualMemory& fake) : fake_(fake) {}
  std::size_t PageBytes() const override { return fake_.PageBytes(); }
  VmStatus MapAt(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.MapAt(address, bytes);
  }
  VmStatus MapBlock(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.MapBlock(address, bytes);
  }
  VmStatus Reserve(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Reserve(address, bytes);
  }
  VmStatus Protect(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Protect(address, bytes);
  }
  VmStatus Unprotect(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Unprotect(address, bytes);
  }
  VmStatus MapClosed(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.MapClosed(address, bytes);
  }
  VmStatus Close(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Close(address, bytes);
  }
  VmStatus Open(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Open(address, bytes);
  }
  bool ClosingSplits() const override { return fake_.ClosingSplits(); }
  VmStatus FindResident(Address address, std::size_t bytes,
                        unsigned char* resident) override {
    const Kernel kernel;
    return fake_.FindResident(address, bytes, resident);
  }
  std::size_t MaxMappings() override {
    const Kernel kernel;
    return fake_.MaxMappings();
  }
  bool IsTaken(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.IsTaken(address, bytes);
  }
  VmStatus Unmap(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Unmap(address, bytes);
  }
  VmStatus Purge(Address address, std::size_t bytes) override {
    const Kernel kernel;
    return fake_.Purge(address, bytes);
  }
  void AskForHugePages(Address address, std::size_t bytes) override {
    const Kernel kernel;
    fake_.AskForHugePages(address, bytes);
  }
  void DeclineHugePages(Address address, std::size_t bytes) override {
    const Kernel kernel;
    fake_.DeclineHugePages(address, bytes);
  }
  void Populate(Address address, std::size_t bytes) override {
    const Kernel kernel;
    fake_.Populate(address, bytes);
  }
  VmStatus Renew(Address address, std::size_t bytes) override {
    return fake_.Renew(address, bytes);
  }
  VmStatus Move(Address from, Address to, std::size_t bytes,
                bool keep_source) override {
    const Kernel kernel;
    return fake_.Move(from, to, bytes, keep_source);
  }
  std::uint64_t Random() override {
    const Kernel kernel;
    return fake_.Random();
  }
  std::uint64_t NowMs() override {
    const Kernel kernel;
    return fake_.NowMs();
  }
  AddressRange RegionRange() const override {
    const Kernel kernel;
    return fake_.RegionRange();
  }

 private:
  FakeVirtualMemory& fake_;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_UNINTERRUPTED_MEMORY_H_
