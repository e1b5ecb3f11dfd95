// Parcels and the mailbox: how blocks freed by other threads reach their owner.
//
// Owns: the words of a parcel on its way. Called by: ThreadHeap.
// Thread-safety: Push from any thread; TakeAll by whoever holds the owner's
// lock. Lock-free: one compare-and-swap to push, one exchange to take all.
//
// A parcel lies out of band, in metadata; nothing is written into the blocks.
// Because a parcel is pushed whole and the chain is only ever taken whole, no
// pop exists and with it no ABA problem (Treiber, IBM RJ 5118, 1986; batches
// as in snmalloc's message queue and BatchIt, ISMM 2024).
//
// Invariants:
//   M1: a parcel is in one place: open at its sender, in one mailbox, or in
//       one list of empty parcels.
//   M2: a block in a sent parcel bears the header Queued until it is filed.
#ifndef HAKMEM_ALLOCATOR_HEAP_PARCEL_H_
#define HAKMEM_ALLOCATOR_HEAP_PARCEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/units.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {

struct Parcel {
  static constexpr std::uint32_t kCapacity = 61;
  // With so many bytes or more, a parcel takes no further block.
  static constexpr std::uint32_t kMaxBytes = 32 * kKiB;
  // Under way, a parcel counts for so many bytes at least: where a thread frees
  // blocks of many owners by turns, each leaves with a few small ones, and the
  // parcels are most of what lies in mailboxes.
  static constexpr std::uint32_t kLeastBytes = 4096;
  // So many of a heap's are under way to owners that do not look: beyond this,
  // it files blocks for them, and has its parcels back.
  static constexpr std::uint32_t kMostOfHeap = 2048;

  void Start(HeapId whose, HeapId sender) {
    owner = whose;
    home = sender;
    count = 0;
    bytes = 0;
  }
  // False: the parcel is full.
  HAK_ALWAYS_INLINE bool TryAppend(void* block, std::size_t block_bytes) {
    if (count == kCapacity || bytes >= kMaxBytes) return false;
    blocks[count++] = block;
    bytes += static_cast<std::uint32_t>(block_bytes);
    return true;
  }

  // Written by the sender before the push or by the keeper of a list; read by
  // the taker after it.
  Parcel* next;
  HeapId owner;  // where the blocks go
  HeapId home;   // whose parcel it is; empty, it goes back there
  std::uint32_t count;
  std::uint32_t bytes;  // of the blocks; sent, kLeastBytes at least
  void* blocks[kCapacity];
};
static_assert(sizeof(Parcel) == 512);

// A stack of parcels that is taken whole.
class ParcelStack {
 public:
  constexpr ParcelStack() = default;
  ParcelStack(const ParcelStack&) = delete;
  ParcelStack& operator=(const ParcelStack&) = delete;

  void Push(Parcel* parcel) {
    Parcel* head = head_.load(std::memory_order_relaxed);
    do {
      parcel->next = head;
      // release: pairs with the acquire in TakeAll, which then sees the parcel.
    } while (!head_.compare_exchange_weak(head, parcel,
                                          std::memory_order_release,
                                          std::memory_order_relaxed) &&
             !PlantedDefect(Defect::kParcelLostInRace));
  }

  // The newest parcel, linked by `next`; null when there is none.
  Parcel* TakeAll() {
    if (empty()) return nullptr;
    // acquire: pairs with the release in Push.
    return head_.exchange(nullptr, std::memory_order_acquire);
  }

  // A hint: a parcel may arrive at any moment.
  bool empty() const {
    return head_.load(std::memory_order_relaxed) == nullptr;
  }

 private:
  // Written by every sender and by the taker.
  std::atomic<Parcel*> head_{nullptr};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_PARCEL_H_
