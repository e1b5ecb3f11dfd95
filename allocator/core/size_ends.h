// Where the sizes end that hot paths serve, once it is known that they may.
//
// Owns: the two ends. Called by: frontend, for forms of `new` that a program
// may have replaced. Thread-safety: Open once, Load from any thread.
//
// Invariants:
//   SE1: who sees the end of Pool's sizes sees that of Tiny's, too. Else a Tiny
//        size would be taken for one of Pool's.
#ifndef HAKMEM_ALLOCATOR_CORE_SIZE_ENDS_H_
#define HAKMEM_ALLOCATOR_CORE_SIZE_ENDS_H_

#include <atomic>
#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"

namespace hakmem {

class SizeEnds {
 public:
  struct Ends {
    std::size_t tiny;
    std::size_t pool;
  };

  // 0 until Open: no size is served.
  HAK_ALWAYS_INLINE Ends Load() const {
    // acquire: pairs with the release in Open (SE1). Libraries that are
    // initialised before hakmem may have made threads.
    const std::size_t pool = pool_.load(std::memory_order_acquire);
    return {LoadForComparison(tiny_), pool};
  }
  void Open(std::size_t tiny, std::size_t pool) {
    tiny_.store(tiny, std::memory_order_relaxed);
    // release: pairs with the acquire in Load.
    pool_.store(pool, std::memory_order_release);
  }

 private:
  std::atomic<std::size_t> tiny_{0};
  std::atomic<std::size_t> pool_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SIZE_ENDS_H_
