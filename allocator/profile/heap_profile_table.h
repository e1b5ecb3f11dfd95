// The heap profile's tables, as they lie in memory: buckets, and apart from
// them nodes and sites, which are added one after the other.
//
// Owns: their layout. Called by: HeapProfile, under its lock. Thread-safety:
// none of its own.
#ifndef HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_TABLE_H_
#define HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

// Sums over samples.
struct ProfileFigures {
  std::uint64_t samples = 0;
  // What they stand for: blocks in 256ths, and bytes.
  std::uint64_t blocks_256 = 0;
  std::uint64_t bytes = 0;

  std::uint64_t blocks() const { return (blocks_256 + 128) / 256; }
  void Add(const ProfileFigures& more) {
    samples += more.samples;
    blocks_256 += more.blocks_256;
    bytes += more.bytes;
  }
  void Subtract(const ProfileFigures& less) {
    samples -= less.samples;
    blocks_256 -= less.blocks_256;
    bytes -= less.bytes;
  }
  bool operator==(const ProfileFigures&) const = default;
};

struct ProfileKinds {
  ProfileFigures live;
  ProfileFigures peak;       // live, when the total was at its peak
  ProfileFigures allocated;  // since the process started
};

struct ProfileTotals : ProfileKinds {
  std::uint64_t mean_bytes = 0;
  std::uint32_t sites = 0;
  // Samples for which there was no room. They count as allocated alone.
  std::uint64_t lost_samples = 0;
};

// By how much the bytes of each kind may be off: the sum over the samples of
// the square of the bytes that one stands for, times the chance that it was not
// taken. In 65,536ths of the square of the mean.
struct ProfileVariances {
  std::uint64_t live;
  std::uint64_t peak;
  std::uint64_t allocated;
};

struct ProfileSite : ProfileKinds {
  ProfileVariances variances;
  std::uint64_t hash;
  std::uint32_t next;  // of its bucket; 0: none, else a number + 1
  CallStack stack;
};

struct HeapProfileTable {
  // So many places, and so many live samples: of 8 GiB, as samples are taken.
  static constexpr std::uint32_t kSites = 4096;
  static constexpr std::uint32_t kNodes = 16384;
  static constexpr std::uint32_t kSiteBuckets = 1024;
  static constexpr std::uint32_t kNodeBuckets = 4096;

  struct Node {
    Address block;
    ProfileFigures weight;
    std::uint32_t site;
    std::uint32_t next;  // as ProfileSite's
    SizeClass asked_class;
  };

  // Where in the profile's window they lie; each grows as it fills.
  static constexpr std::size_t kNodesAt = 1 * kMiB;
  static constexpr std::size_t kSitesAt = 4 * kMiB;
  static constexpr std::size_t kWindowBytes = 8 * kMiB;

  std::uint32_t unused_node;  // from here on
  std::uint32_t free_nodes;
  // 0: empty, else a number + 1.
  std::uint32_t site_buckets[kSiteBuckets];
  std::uint32_t node_buckets[kNodeBuckets];
};
static_assert(HeapProfileTable::kNodesAt +
                  HeapProfileTable::kNodes * sizeof(HeapProfileTable::Node) <=
              HeapProfileTable::kSitesAt);
static_assert(HeapProfileTable::kSitesAt +
                  HeapProfileTable::kSites * sizeof(ProfileSite) <=
              HeapProfileTable::kWindowBytes);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_HEAP_PROFILE_TABLE_H_
