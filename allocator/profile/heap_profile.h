// The heap profile: samples of live blocks, and what they add up to by the
// place that allocated them.
//
// Owns: its tables, which are mapped with the first sample and as they grow.
// Called by: Allocator, for sampled blocks alone; frontend, to write it down.
// Thread-safety: any thread; one lock, last in the order. Start before all
// else.
//
// A sample stands for more bytes than it has: for its bytes by the chance that
// a block of this size is sampled. The sums of these weights are unbiased
// estimates of what all blocks add up to. Sites, the distinct stacks, are only
// added; so are the nodes of samples, which come back by a list. Hence memory
// is touched as far as it was once needed.
//
// Invariants:
//   PF1: each live sample is in the chain of its address, once; live figures
//        and the live variance of a site are the sums over its live samples,
//        and the total's figures over all.
//   PF2: the tables never take more than their fixed size; what does not fit is
//        counted as lost.
//   PF3: the sequence is odd while sites or totals change, and another one
//        afterwards: who reads the memory of the process from outside, before
//        and after, knows whether it has read one moment.
#ifndef HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_H_
#define HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/profile/heap_profile_table.h"
#include "allocator/profile/heap_tables.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class HeapProfile {
 public:
  explicit constexpr HeapProfile(VirtualMemory& memory) : memory_(memory) {}
  HeapProfile(const HeapProfile&) = delete;
  HeapProfile& operator=(const HeapProfile&) = delete;

  // Once. One byte in `mean_bytes` is sampled; 0: none. Without `stacks` all of
  // them are empty.
  void Start(std::uint64_t mean_bytes, bool stacks, Region::Window window);
  bool on() const { return mean_bytes_ != 0; }

  // The callers of the function whose frame this is, by the unwind tables.
  void CaptureCaller(const void* frame, CallStack& stack) const;
  // Keeps a sample: the block at `block`, which is the caller's.
  // `asked_class`: see AskedClass. `thinning`: see SampleGaps.
  HAK_COLD void Add(const void* block, std::size_t bytes, SizeClass asked_class,
                    const CallStack& stack, unsigned thinning = 0);
  // The block is about to be freed, or is no longer sampled. Returns its
  // sample; of no block if none was kept.
  HAK_COLD HeapProfileTable::Node Remove(const void* block);
  // The block of a sample that was removed is sampled again.
  HAK_COLD void PutBack(const HeapProfileTable::Node& sample);
  // For a slab's block: the class of what was asked for (block_header.h, H4).
  // `otherwise`: for a block of which no sample was kept.
  HAK_COLD SizeClass AskedClass(const void* block, SizeClass otherwise);
  // False: no sample of it was kept, and nothing is written down.
  [[nodiscard]] HAK_COLD bool SetAskedClass(const void* block,
                                            SizeClass asked_class);

  // Hints for statistics.
  std::size_t mapped_bytes() const {
    return buckets_.mapped_bytes() + nodes_.mapped_bytes() +
           sites_.mapped_bytes();
  }
  std::uint64_t map_calls() const {
    return buckets_.map_calls() + nodes_.map_calls() + sites_.map_calls();
  }

  template <typename Visit>
  constexpr void VisitTables(Visit visit) const {
    visit(buckets_);
    visit(nodes_);
    visit(sites_);
  }

  // `waits`: for who holds the lock. In a handler of a signal that may be this
  // thread, and what is copied is then of no single moment.
  ProfileTotals Totals(bool waits = true);
  // The sites have the numbers from 0 on. False: there is none with this one.
  bool CopySite(std::uint32_t index, ProfileSite& site, bool waits = true);

  // For a fork. The child goes on with what its parent has.
  FutexLock& lock() { return lock_; }

  void CheckInvariants();

  // For readers in other processes.
  constexpr HeapTablesDescriptor Describe(const char* hakmem_version,
                                          const char* variant) const;

 private:
  using Table = HeapProfileTable;

  // Holds the lock while what readers from outside see changes (PF3).
  class ABSL_SCOPED_LOCKABLE Change {
   public:
    explicit Change(HeapProfile& profile)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(profile.lock_)
        : profile_(profile) {
      profile_.lock_.Lock();
      profile_.sequence_.store(Next(), std::memory_order_relaxed);
      // release: what is changed, is so afterwards
      // (tests/models/profile_sequence.pml). Pairs with nothing in the process:
      // the readers are others.
      std::atomic_thread_fence(std::memory_order_release);
    }
    ~Change() ABSL_UNLOCK_FUNCTION() {
      // release: what was changed, was so before. Pairs with nothing, as above.
      profile_.sequence_.store(Next(), std::memory_order_release);
      profile_.lock_.Unlock();
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    std::uint64_t Next() const {
      return profile_.sequence_.load(std::memory_order_relaxed) + 1;
    }

    HeapProfile& profile_;
  };

  bool Grow(MetadataTable& table, std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool EnsureTable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool TryAdd(const void* block, const ProfileFigures& weight,
              SizeClass asked_class, const CallStack& stack)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // False: there is no room. The block has no sample yet.
  bool TryAddLive(const Table::Node& sample)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint32_t FindOrAddSite(const CallStack& stack)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint32_t TakeNode() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The link that leads to the block's node, or ends its chain.
  std::uint32_t& LinkTo(const void* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void RemoveAt(std::uint32_t& link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Table::Node& NodeAt(std::uint32_t index) {
    return reinterpret_cast<Table::Node*>(nodes_.start())[index];
  }
  ProfileSite& SiteAt(std::uint32_t index) {
    return reinterpret_cast<ProfileSite*>(sites_.start())[index];
  }
  ProfileFigures WeightOf(std::size_t bytes, unsigned thinning) const;
  std::uint64_t VarianceOf(const ProfileFigures& weight) const;
  void NotePeak() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  // Written by Start.
  std::uint64_t mean_bytes_ = 0;
  bool stacks_ = false;
  FutexLock lock_;
  // Written under the lock, read from outside of the process.
  std::atomic<std::uint64_t> sequence_{0};
  const ProfileSite* first_site_ = nullptr;  // written by Start
  // Grown under the lock.
  MetadataTable buckets_;
  MetadataTable nodes_;
  MetadataTable sites_;
  Table* table_ ABSL_GUARDED_BY(lock_) = nullptr;
  // The kernel refused to let a table grow, and is not asked again.
  bool refused_ ABSL_GUARDED_BY(lock_) = false;
  ProfileTotals totals_ ABSL_GUARDED_BY(lock_);
  // Live bytes beyond these are a new peak.
  std::uint64_t peak_mark_bytes_ ABSL_GUARDED_BY(lock_) = 0;
};

constexpr HeapTablesDescriptor HeapProfile::Describe(const char* hakmem_version,
                                                     const char* variant) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // The stack is a site's last field.
  constexpr std::uint32_t kStackAt = sizeof(ProfileSite) - sizeof(CallStack);
  return {.magic = "hakheap",
          .version = HeapTablesDescriptor::kVersion,
          .descriptor_bytes = sizeof(HeapTablesDescriptor),
          .site_bytes = sizeof(ProfileSite),
          .stack_offset = kStackAt + offsetof(CallStack, addresses),
          .frames_offset = kStackAt + offsetof(CallStack, count),
          .most_frames = CallStack::kMaxFrames,
          .most_sites = Table::kSites,
          .can_sample = 1,
          .sequence = &sequence_,
          .mean_bytes = &mean_bytes_,
          .totals = &totals_.live,
          .lost_samples = &totals_.lost_samples,
          .site_count = &totals_.sites,
          .sites = static_cast<const void*>(&first_site_),
          .hakmem_version = hakmem_version,
          .variant = variant,
          .variances_offset = sizeof(ProfileKinds)};
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_H_
