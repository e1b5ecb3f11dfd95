// A VirtualMemory for tests: maps real memory, watches the contract, and
// refuses calls on demand.
//
// Owns: every range mapped through it; its destructor unmaps what is left.
// Called by: tests. Thread-safety: any thread (one lock).
//
// A call against the contract of VirtualMemory (not aligned, not mapped,
// overlapping) ends the test by a failed HAK_CHECK.
//
// Invariants:
//   V1: mapped_ is what the kernel has mapped through this object.
//   V2: purged_, huge_ and protected_ are subsets of mapped_.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FAKE_VIRTUAL_MEMORY_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FAKE_VIRTUAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "allocator/platform/fake_range_set.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"

namespace hakmem {

class FakeVirtualMemory final : public VirtualMemory {
 public:
  explicit FakeVirtualMemory(std::uint64_t seed = 1) : random_(seed) {}
  ~FakeVirtualMemory();
  FakeVirtualMemory(const FakeVirtualMemory&) = delete;
  FakeVirtualMemory& operator=(const FakeVirtualMemory&) = delete;

  // --- VirtualMemory ---
  std::size_t PageBytes() const override { return linux_.PageBytes(); }
  VmStatus MapAt(Address address, std::size_t bytes) override;
  VmStatus MapBlock(Address address, std::size_t bytes) override;
  VmStatus Reserve(Address address, std::size_t bytes) override;
  VmStatus Protect(Address address, std::size_t bytes) override;
  VmStatus Unprotect(Address address, std::size_t bytes) override;
  VmStatus MapClosed(Address address, std::size_t bytes) override;
  VmStatus Close(Address address, std::size_t bytes) override;
  VmStatus Open(Address address, std::size_t bytes) override;
  bool ClosingSplits() const override { return !has_guard_regions_; }
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
  std::uint64_t Random() override;
  std::uint64_t NowMs() override;
  AddressRange RegionRange() const override;

  // --- Refusals ---
  enum class Refuse : std::uint8_t { kOnce, kFromThenOn };
  // Refuses the nth call from now on (1: the next one) of `kind`; kNone: of any
  // kind. Takes the place of the refusal that was set before.
  void RefuseCall(std::uint64_t nth, int error_number,
                  Refuse refuse = Refuse::kOnce, VmCall kind = VmCall::kNone);
  // Takes back RefuseCall; limits stay.
  void RefuseNothing();
  // A Move refused by RefuseCall takes its target with it.
  void LoseTargetOfRefusedMoves();
  // A Move with keep_source succeeds, but its source cannot be mapped again.
  void LoseSourceOfMoves();
  // Like RLIMIT_AS: refuses with ENOMEM what would map more.
  void LimitBytes(std::size_t bytes);
  // Like vm.overcommit_memory = 0: a MapBlock of more is refused with ENOMEM.
  void LimitBlocks(std::size_t bytes);
  // Like vm.max_map_count: refuses with ENOMEM what would make more ranges,
  // also an Unmap or Protect that splits one. Ranges that touch count as one
  // when both or neither can be read.
  void LimitMappings(std::size_t mappings);
  // As Linux from 6.13 on: what is closed takes no mapping.
  void UseGuardRegions() { has_guard_regions_ = true; }
  // As under a filter of system calls: nobody tells what is in memory.
  void HideResident() { hides_resident_ = true; }
  // Called, without any lock of this object, before each call that takes the
  // kernel time by its length: Unmap, Purge, Move. Before other threads call.
  using Watcher = std::function<void(VmCall, Address, std::size_t bytes)>;
  void WatchLongCalls(Watcher watcher) { watcher_ = std::move(watcher); }
  // How many calls were refused, by RefuseCall or a limit.
  std::uint64_t refused() const;
  // How many Moves lost their target or their source.
  std::uint64_t lost() const;

  // --- Surroundings ---
  void SetNowMs(std::uint64_t now_ms);
  void AdvanceMs(std::uint64_t ms);
  // What happens between the next look at the clock and what is made of it.
  void RunAfterNextNow(std::function<void()> what);
  void SetRegionRange(AddressRange range);
  // Sets what MaxMappings says; LimitMappings makes it true.
  void SetMaxMappings(std::size_t mappings);

  // --- What has happened ---
  // Calls of `kind`, refused ones included; kNone: of all kinds.
  std::uint64_t calls(VmCall kind) const;
  // Calls of IsTaken, which changes nothing.
  std::uint64_t looks() const;
  // Calls of FindResident.
  std::uint64_t resident_looks() const;
  std::size_t mapped_bytes() const;
  std::size_t mappings() const;
  bool IsMapped(Address address, std::size_t bytes) const;
  // Whether no byte of the range, which is mapped, can be read.
  bool IsProtected(Address address, std::size_t bytes) const;
  bool IsAnyProtected(Address address, std::size_t bytes) const;
  std::size_t protected_bytes() const;
  // Whether every page of the range has been purged since it was mapped or
  // ForgetPurges was called.
  bool IsPurged(Address address, std::size_t bytes) const;
  std::size_t purged_bytes() const;
  // Whether huge pages were asked for in the whole range.
  bool IsHuge(Address address, std::size_t bytes) const;
  // Whether Populate was called for the whole range.
  bool WasPopulated(Address address, std::size_t bytes) const;
  void ForgetPurges();

 private:
  static constexpr std::size_t kVmCalls = 6;
  static constexpr std::size_t kNoLimit =
      std::numeric_limits<std::size_t>::max();

  // The caller of these holds mutex_.
  void CheckRange(Address address, std::size_t bytes) const;
  // Counts the call; the errno to refuse it with, or 0.
  int CountCall(VmCall kind);
  // What a call makes of mapped_ and protected_.
  using Change = std::function<void(FakeRangeSet&, FakeRangeSet&)>;
  static constexpr auto kChangesNothing = [](FakeRangeSet&, FakeRangeSet&) {};
  // Whether it makes more than there is and than a limit allows.
  bool LimitsRefuse(const Change& change) const;
  using KernelCall = VmStatus (LinuxVirtualMemory::*)(Address, std::size_t);
  // Has the kernel change a mapped range, unless the call is to be refused.
  VmStatus Do(VmCall kind, Address address, std::size_t bytes, KernelCall call,
              const Change& change);
  VmStatus ChangeGuard(Address address, std::size_t bytes, bool closed);
  VmStatus MapNew(Address address, std::size_t bytes, bool accessible,
                  std::size_t most_bytes);
  // Leaves the target of a Move that is refused as VirtualMemory promises.
  VmStatus RefuseMove(Address to, std::size_t bytes, int error_number);

  LinuxVirtualMemory linux_;
  void Announce(VmCall kind, Address address, std::size_t bytes) const {
    if (watcher_) watcher_(kind, address, bytes);
  }

  Watcher watcher_;
  mutable std::mutex mutex_;
  FakeRangeSet mapped_;
  FakeRangeSet purged_;
  FakeRangeSet huge_;
  FakeRangeSet protected_;
  FakeRangeSet guarded_;  // closed by guard regions
  bool has_guard_regions_ = false;
  bool hides_resident_ = false;
  FakeRangeSet populated_;
  std::uint64_t calls_[kVmCalls] = {};
  std::uint64_t refused_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t looks_ = 0;
  std::uint64_t resident_looks_ = 0;
  // The refusal: due after as many further calls of refuse_kind_; 0: none.
  std::uint64_t refuse_in_ = 0;
  int refuse_error_ = 0;
  Refuse refuse_ = Refuse::kOnce;
  VmCall refuse_kind_ = VmCall::kNone;
  bool lose_target_ = false;
  bool lose_source_ = false;
  std::size_t byte_limit_ = kNoLimit;
  std::size_t block_limit_ = kNoLimit;
  std::size_t mapping_limit_ = kNoLimit;
  std::size_t max_mappings_ = 65'530;
  std::uint64_t now_ms_ = 0;
  std::function<void()> after_now_;
  std::mt19937_64 random_;
  std::optional<AddressRange> region_range_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FAKE_VIRTUAL_MEMORY_H_
