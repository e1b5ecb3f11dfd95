// Clearing, copying and giving back long memory, of which most may never have
// been touched, and stays so.
//
// Owns: nothing but a count. Called by: core, for blocks that are the caller's;
// heap, for free pages of its slabs; HugePool. Thread-safety: any thread; no
// lock.
#ifndef HAKMEM_ALLOCATOR_ACE_TOUCHED_PAGES_H_
#define HAKMEM_ALLOCATOR_ACE_TOUCHED_PAGES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/slab/block_use.h"

namespace hakmem {

class TouchedPages {
 public:
  explicit constexpr TouchedPages(VirtualMemory& memory) : memory_(memory) {}
  TouchedPages(const TouchedPages&) = delete;
  TouchedPages& operator=(const TouchedPages&) = delete;

  // Gives the caller's pages back, which are zero then, in slices: while one
  // call takes pages back, 1 to 8 ms, others wait that map memory. False:
  // refused.
  static constexpr std::size_t kSliceBytes = 32 * kMiB;
  bool Purge(Address begin, std::size_t bytes);
  // Copies a long block's first bytes to another, which takes no memory for
  // what is zero. Copy writes all, where most pages are in memory.
  void CopyTouched(Address from, Address to, std::size_t bytes);
  void Copy(Address from, Address to, std::size_t bytes);
  // Clears a span, or its start; pages that were never touched, which may be
  // most where it was granted `fresh` from the kernel, stay so. `known`, of a
  // range that is cleared again and again, saves most questions.
  void ClearTouched(Address begin, std::size_t bytes, bool fresh = false,
                    PagesInMemory* known = nullptr);
  // Clears a range by giving back its whole pages, as of a span that a fork's
  // parent has, too: no shared page is copied. Where the kernel refuses, clears
  // up to `most_cleared_bytes`.
  void GiveBack(Address begin, std::size_t bytes,
                std::uint64_t most_cleared_bytes = kClearAll);
  // The same for the end of a span or Huge block that got shorter, where giving
  // back is worth it.
  void DropTail(Address begin, std::size_t bytes,
                std::uint64_t most_cleared_bytes = kClearAll);

  constexpr const std::atomic<std::uint64_t>& purge_calls_word() const {
    return purge_calls_;
  }

 private:
  bool ClearUnasked(Address begin, std::size_t bytes, PagesInMemory& known);

  VirtualMemory& memory_;
  // Written by any thread, read by statistics.
  std::atomic<std::uint64_t> purge_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_TOUCHED_PAGES_H_
