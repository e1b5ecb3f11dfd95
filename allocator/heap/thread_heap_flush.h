// ThreadHeap: what goes back, at a thread's end and from time to time; and the
// checks. Included by thread_heap_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"
#include "allocator/heap/thread_heap.h"
#include "allocator/platform/libc_functions.h"

namespace hakmem {

// All of the class that rests goes back to the slabs.
template <const Config& kConfig>
void ThreadHeap<kConfig>::EndRest(SizeClass size_class) {
  if constexpr (kConfig.delay_reuse) {
    void* blocks[kMaxResting];
    const std::uint32_t count = Cached::EndRest(size_class, blocks);
    store_.PutBack(size_class, blocks, count);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushClass(SizeClass size_class) {
  const MagazineTop loaded = this->Settle(size_class);
  Cache(size_class).Clear();
  EndRest(size_class);
  store_.FlushClass(size_class, loaded);
}

// Only the owner may call it, unless there is none.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushAll() {
  DropTorn();
  for (unsigned i = 0; i < kClassCount; ++i) {
    FlushClass(static_cast<SizeClass>(i));
  }
  store_.slabs().ReleaseEmpty();
  granted_at_flush_ = store_.slabs().slabs_granted();
  store_.KeepSpares(0);
}

// What a heap without a thread may keep stays, if it is no more than that.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushToLimit() {
  DropTorn();
  std::uint64_t bytes = store_.depot_bytes();
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    bytes += (MagazineCount(Cache(size_class).top) +
              MagazineCount(store_.depot(size_class).previous)) *
             ClassBytes(size_class);
    // Nobody rests without a thread that could end it.
    EndRest(size_class);
  }
  const unsigned crowding = system().CrowdingOfAbandoned();
  if (bytes > kMaxLeftBytes >> crowding ||
      store_.slabs().slabs_granted() - granted_at_flush_ > kMaxLeftSlabs >>
          crowding) {
    FlushAll();
  } else {
    store_.KeepSpares(SpareMagazines::kAlwaysKept);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Flush() {
  SendAll();
  store_.lock().Lock();
  FlushAll();
  store_.lock().Unlock();
  spans_.ReleaseAll(system().ace);
  CountSlowPath();
  CheckIfWanted(kNoClass);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Leave() {
  if (!PlantedDefect(Defect::kOutboxesKeptAtExit)) SendAll();
  store_.lock().Lock();
  FlushToLimit();
  store_.lock().Unlock();
  spans_.ReleaseAll(system().ace);
  if (system().ManyHaveLeft()) system().ace.ForgetPeak();
  store_.TrimExchange(system(), /*all=*/false);
  CountSlowPath();
  CheckIfWanted(kNoClass);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryReclaim() {
  if (!store_.touched()) return;
  if (store_.lock().TryLock()) {
    store_.NoteIdle();
    FlushWithinReach();
    store_.slabs().ReleaseEmpty();
    store_.lock().Unlock();
  }
  // After NoteIdle: PutSpan looks whether that has been.
  spans_.ReleaseAll(system().ace);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryTrim() {
  spans_.Trim(system().ace);
  // So thousands of threads that sleep cost little.
  if (!store_.touched() || !store_.lock().TryLock()) return;
  if (store_.TrimSpares()) FlushWithinReach();
  store_.TrimDepots();
  store_.lock().Unlock();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TrimHeaps(HeapSystem& system, HeapId visits) {
  // acquire: pairs with the release in HeapRegistry::Attach.
  const HeapId count = system.heap_count.load(std::memory_order_acquire);
  const HeapId first =
      system.next_visited.fetch_add(visits, std::memory_order_relaxed);
  for (HeapId i = 0; i < visits; ++i) {
    const HeapId id = (first + i) % count + 1;
    reinterpret_cast<ThreadHeap*>(system.HeapAddress(id))->TryTrim();
  }
}

// A heap whose thread does not exist in the child is torn: what is changed
// under the lock, whose gate the fork had closed, is whole, and the rest may
// not be. A heap without a thread is not written to, which would copy its
// pages, and of these one page is. One that the forking thread leaves stays as
// it is, its lock, too: a signal handler may have forked that interrupted its
// thread, which goes on in it then.
template <const Config& kConfig>
void ThreadHeap<kConfig>::ChildAfterFork(bool mine, bool leave) {
  store_.lock().ResetAfterFork();
  if (leave) store_.set_abandoned(true);
  if (mine || abandoned()) return;
  store_.NoteTorn();
  store_.NoteTouched();
  store_.set_abandoned(true);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckLocked(bool with_cache) {
  DropTorn();
  std::uint32_t magazines = store_.CheckInvariants();
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    if (with_cache) {
      this->CheckClass(system().ace.region(), size_class);
      magazines += this->MagazinesOf(size_class);
    }
  }
  if (!with_cache) return;
  if (!was_torn_) HAK_CHECK_EQ(magazines, store_.held());  // T1
  spans_.CheckInvariants(system().ace.region().coarse(),
                         system().cached_span_units);
}

// Checks what was touched at once; all of heap and ACE after every so many slow
// paths, unless the last time took longer than has passed since: so checks of
// the whole never take more than half of a thread's time, however large it is.
template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckAfterSlowPath(SizeClass touched) {
  if (touched != kNoClass) {
    const GatedLockHolder hold(store_.lock());
    this->CheckClass(system().ace.region(), touched);
    store_.CheckClass(touched);
  }
  if (++since_check_ < kCheckInterval) return;
  const std::uint64_t begin_ns = MonotonicNs();
  if (begin_ns < next_check_ns_) return;
  since_check_ = 0;
  CheckInvariants();
  system().ace.CheckInvariants();
  const std::uint64_t end_ns = MonotonicNs();
  next_check_ns_ = end_ns + (end_ns - begin_ns);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_
