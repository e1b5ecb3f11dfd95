// Where readers in other processes find the heap profile: the exported symbol
// hakmem_heap_tables (docs/process_tables.md).
//
// Owns: the layout. Called by: HeapProfile, frontend; `hakmem heap PID` reads
// it. Thread-safety: constants.
//
// Invariants:
//   HT1: fields are only ever added at the end; `version` changes when one of
//        the others changes its meaning.
#ifndef HAKMEM_ALLOCATOR_PROFILE_HEAP_TABLES_H_
#define HAKMEM_ALLOCATOR_PROFILE_HEAP_TABLES_H_

#include <cstdint>

namespace hakmem {

struct HeapTablesDescriptor {
  static constexpr std::uint32_t kVersion = 1;

  char magic[8];  // "hakheap" and NUL
  std::uint32_t version;
  std::uint32_t descriptor_bytes;
  // A site begins with its live, peak and allocated figures, and so do the
  // totals: samples, blocks in 256ths, bytes, each an uint64_t.
  std::uint32_t site_bytes;
  std::uint32_t stack_offset;   // return addresses
  std::uint32_t frames_offset;  // an uint32_t: how many there are
  std::uint32_t most_frames;
  std::uint32_t most_sites;
  std::uint32_t can_sample;  // 0: this variant never does, of older versions
  const void* sequence;      // an uint64_t, odd while the tables change
  const void* mean_bytes;    // an uint64_t; 0: nothing is sampled
  const void* totals;
  const void* lost_samples;  // an uint64_t
  const void* site_count;    // an uint32_t
  const void* sites;         // a pointer to the first one
  const char* hakmem_version;
  const char* variant;
  // Three uint64_t in a site, of what is live, peak and allocated: the variance
  // in 65,536ths of the square of mean_bytes. A structure of 104 bytes ends
  // before it.
  std::uint64_t variances_offset;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_HEAP_TABLES_H_
