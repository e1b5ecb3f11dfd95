// The blocks that a program has of the library, and what each call must do.
//
// Owns: the model of these blocks. Called by: symbols_fuzz. Thread-safety:
// none. Every difference ends the process.
#ifndef HAKMEM_FUZZ_LIBRARY_MODEL_H_
#define HAKMEM_FUZZ_LIBRARY_MODEL_H_

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/core/test_model_heap.h"
#include "fuzz/library_calls.h"
#include "fuzz/library_questions.h"

namespace hakmem {

class LibraryModel {
 public:
  static constexpr std::size_t kLeast = kMinAlignmentBytes;
  static constexpr std::size_t kPageBytes = 4096;

  ModelHeap& model() { return model_; }
  bool full() const { return model_.live_bytes() > kMostLiveBytes; }

  // A call begins, ends: only what no memory can hold, or the kernel may
  // refuse, fails.
  void Begin() {
    events_ = LastEvent();
    errno = kNoErrno;
  }
  void End(bool served, std::size_t size, std::size_t alignment) const {
    const int error = errno;
    const std::uint64_t events = LastEvent() - events_;
    if (served) {
      HAK_CHECK_EQ(error, kNoErrno);
      HAK_CHECK_LE(events, 1U);
    } else if (!IsPowerOfTwo(alignment)) {
      HAK_CHECK_EQ(error, EINVAL);
      HAK_CHECK_EQ(events, 0U);
    } else {
      HAK_CHECK_EQ(error, ENOMEM);
      HAK_CHECK_EQ(events, 1U);
      HAK_CHECK_GT(size, kMostLiveBytes);
    }
  }
  // Of a call that hands out nothing.
  static void EndQuiet() { HAK_CHECK_EQ(errno, kNoErrno); }

  // Carries out a call that returns a block, or null and has set errno.
  template <typename F>
  void* Take(std::size_t size, std::size_t alignment, F call,
             BlockKind kind = BlockKind::kMalloc, std::size_t zero_bytes = 0) {
    if (full()) return nullptr;
    Begin();
    void* block = call();
    End(block != nullptr, size, alignment);
    if (block == nullptr) return nullptr;
    const std::size_t usable = malloc_usable_size(block);
    ModelHeap::CheckZero(block, std::min(zero_bytes, usable));
    model_.Add(block, size, std::max(alignment, kLeast), usable);
    model_.SetKind(block, kind);
    return block;
  }

  // A block has another size, or place. ModelHeap::Resize forgets alignments.
  void Resize(void* old_block, void* block, std::size_t size,
              std::size_t alignment, std::size_t usable) {
    model_.Resize(old_block, block, size, usable);
    model_.Remove(block);
    model_.Add(block, size, alignment, usable);
  }

  // By a function of the block's family. No ?: here: clang 19 makes both calls
  // of `sized ? operator delete(block, size) : operator delete(block)`.
  void Free(void* block, unsigned how) {
    const ModelHeap::Block old = model_.At(block);
    model_.Remove(block);
    const auto alignment = static_cast<std::align_val_t>(old.alignment);
    const bool sized = how % 2 != 0;
    errno = kNoErrno;
    switch (old.kind) {
      case BlockKind::kNew:
        if (sized) {
          operator delete(block, old.size);
        } else {
          operator delete(block);
        }
        break;
      case BlockKind::kNewArray:
        if (sized) {
          operator delete[](block, old.size);
        } else {
          operator delete[](block);
        }
        break;
      case BlockKind::kAlignedNew:
        if (sized) {
          operator delete(block, old.size, alignment);
        } else {
          operator delete(block, alignment);
        }
        break;
      case BlockKind::kAlignedNewArray:
        if (sized) {
          operator delete[](block, old.size, alignment);
        } else {
          operator delete[](block, alignment);
        }
        break;
      default:
        FreeOfC(block, old.size, old.alignment, RoundedSize(old, how / 2 % 4),
                how / 8);
        break;
    }
    EndQuiet();
  }

 private:
  // What sdallocx may be told (JE2).
  static std::size_t RoundedSize(const ModelHeap::Block& block, unsigned how) {
    const std::size_t most = std::max(
        block.usable, nallocx(block.size, std::countr_zero(block.alignment)));
    const std::size_t sizes[] = {block.size, block.usable, most,
                                 block.size + (most - block.size) / 2};
    return sizes[how];
  }

  static constexpr std::size_t kMostLiveBytes = 24 * kMiB;
  // No call sets it.
  static constexpr int kNoErrno = 7777;

  ModelHeap model_;
  std::uint64_t events_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_LIBRARY_MODEL_H_
