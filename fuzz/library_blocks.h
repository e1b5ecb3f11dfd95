// Each function of the library that hands out a block.
//
// Owns: nothing. Called by: symbols_fuzz. Thread-safety: none.
#ifndef HAKMEM_FUZZ_LIBRARY_BLOCKS_H_
#define HAKMEM_FUZZ_LIBRARY_BLOCKS_H_

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "fuzz/library_calls.h"
#include "fuzz/library_model.h"
#include "fuzz/records.h"

namespace hakmem {

// Alignments of all kinds, powers of two mostly.
inline std::size_t AlignmentOf(unsigned number) {
  return number % 8 == 0 ? number / 8U : std::size_t{1} << number / 8U % 24;
}

inline void TakePlain(LibraryModel& blocks, const Record& record,
                      std::size_t size) {
  switch (record.a % 4) {
    case 0:
      blocks.Take(
          size, kMinAlignmentBytes, [=] { return calloc(1, size); },
          BlockKind::kMalloc, size);
      break;
    case 1: {
      const std::size_t count = record.a / 4U;
      std::size_t bytes = 0;
      const std::size_t each = size % 4099 << record.who / 2 % 64;
      if (__builtin_mul_overflow(count, each, &bytes)) bytes = ~std::size_t{0};
      blocks.Take(
          bytes, kMinAlignmentBytes, [=] { return calloc(count, each); },
          BlockKind::kMalloc, bytes);
      break;
    }
    case 2:
      blocks.Take(size, kMinAlignmentBytes,
                  [=] { return realloc(nullptr, size); });
      break;
    default:
      blocks.Take(size, kMinAlignmentBytes, [=] { return malloc(size); });
      break;
  }
}

inline void TakeAligned(LibraryModel& blocks, const Record& record,
                        std::size_t size) {
  const std::size_t alignment = AlignmentOf(record.a / 8U);
  switch (record.a % 5) {
    case 0:
      blocks.Take(size, alignment,
                  [=] { return aligned_alloc(alignment, size); });
      break;
    case 1:
      // Raised to the next power of two; 0 counts as 1.
      blocks.Take(size, std::bit_ceil(alignment),
                  [=] { return memalign(alignment, size); });
      break;
    case 2: {
      const bool valid = IsPowerOfTwo(alignment) && alignment >= sizeof(void*);
      int error = 0;
      void* untouched = &error;
      blocks.Take(size, valid ? alignment : 0, [&]() -> void* {
        void* block = untouched;
        error = posix_memalign(&block, alignment, size);
        if (error == 0) return block;
        HAK_CHECK(block == untouched);
        errno = error;
        return nullptr;
      });
      break;
    }
    case 3:
      blocks.Take(size, LibraryModel::kPageBytes, [=] { return valloc(size); });
      break;
    default: {
      const bool fits = size <= ~std::size_t{0} - LibraryModel::kPageBytes;
      blocks.Take(fits ? RoundUp(std::max<std::size_t>(size, 1),
                                 LibraryModel::kPageBytes)
                       : size,
                  LibraryModel::kPageBytes, [=] { return pvalloc(size); });
      break;
    }
  }
}

// Of operators, which throw, or return null and promise nothing of errno.
template <typename F>
void* OrNull(F call) {
  void* block = nullptr;
  try {
    block = call();
  } catch (const std::bad_alloc&) {
  }
  if (block == nullptr) errno = ENOMEM;
  return block;
}

inline void TakeNew(LibraryModel& blocks, const Record& record,
                    std::size_t size) {
  const auto align =
      static_cast<std::align_val_t>(std::size_t{1} << record.a / 8 % 24);
  const auto& nothrow = std::nothrow;
  const auto take = [&](BlockKind kind, auto call) {
    const bool aligned =
        kind == BlockKind::kAlignedNew || kind == BlockKind::kAlignedNewArray;
    blocks.Take(
        size, aligned ? static_cast<std::size_t>(align) : LibraryModel::kLeast,
        [&] { return OrNull(call); }, kind);
  };
  switch (record.a % 8) {
    case 0:
      take(BlockKind::kNew, [&] { return operator new(size); });
      break;
    case 1:
      take(BlockKind::kNew, [&] { return operator new(size, nothrow); });
      break;
    case 2:
      take(BlockKind::kNewArray, [&] { return operator new[](size); });
      break;
    case 3:
      take(BlockKind::kNewArray, [&] { return operator new[](size, nothrow); });
      break;
    case 4:
      take(BlockKind::kAlignedNew, [&] { return operator new(size, align); });
      break;
    case 5:
      take(BlockKind::kAlignedNew,
           [&] { return operator new(size, align, nothrow); });
      break;
    case 6:
      take(BlockKind::kAlignedNewArray,
           [&] { return operator new[](size, align); });
      break;
    default:
      take(BlockKind::kAlignedNewArray,
           [&] { return operator new[](size, align, nothrow); });
      break;
  }
}

inline void TakeTypedAligned(LibraryModel& blocks, const Record& record,
                             std::size_t size) {
  const std::uint64_t token = TokenOf(record.a / 8U);
  const std::size_t alignment = AlignmentOf(record.who);
  switch (record.a / 128 % 4) {
    case 0:
      blocks.Take(size, alignment, [=] {
        return __alloc_token_aligned_alloc(alignment, size, token);
      });
      break;
    case 1:
      blocks.Take(size, std::bit_ceil(alignment), [=] {
        return __alloc_token_memalign(alignment, size, token);
      });
      break;
    case 2:
      blocks.Take(size, LibraryModel::kPageBytes,
                  [=] { return __alloc_token_valloc(size, token); });
      break;
    default: {
      const std::size_t valid = std::bit_ceil(alignment);
      blocks.Take(
          size, valid,
          [=] {
            return OrNull([=] {
              return __alloc_token__ZnamSt11align_val_t(
                  size, static_cast<std::align_val_t>(valid), token);
            });
          },
          BlockKind::kAlignedNewArray);
      break;
    }
  }
}

inline void TakeTyped(LibraryModel& blocks, const Record& record,
                      std::size_t size) {
  const std::uint64_t token = TokenOf(record.a / 8U);
  constexpr std::size_t kLeast = LibraryModel::kLeast;
  switch (record.a % 8) {
    case 0:
      blocks.Take(
          size, kLeast, [=] { return __alloc_token_calloc(1, size, token); },
          BlockKind::kMalloc, size);
      break;
    case 1:
      blocks.Take(size, kLeast,
                  [=] { return __alloc_token_realloc(nullptr, size, token); });
      break;
    case 2:
      blocks.Take(size, kLeast, [=] {
        return __alloc_token_reallocarray(nullptr, size, 1, token);
      });
      break;
    case 3:
      blocks.Take(
          size, kLeast,
          [=] {
            return OrNull([=] { return __alloc_token__Znwm(size, token); });
          },
          BlockKind::kNew);
      break;
    case 4:
      blocks.Take(
          size, kLeast,
          [=] {
            return OrNull([=] {
              return __alloc_token__ZnamRKSt9nothrow_t(size, std::nothrow,
                                                       token);
            });
          },
          BlockKind::kNewArray);
      break;
    case 5:
      blocks.Take(size, kLeast, [=] { return __alloc_token_5_malloc(size); });
      break;
    case 6:
      TakeTypedAligned(blocks, record, size);
      break;
    default:
      blocks.Take(size, kLeast,
                  [=] { return __alloc_token_malloc(size, token); });
      break;
  }
}

// The flags of jemalloc's calls: an alignment, and for `zero` that of zeroed
// blocks; those above name caches and arenas.
inline constexpr int kZero = 0x40;
inline int FlagsOf(unsigned number, bool zero) {
  return static_cast<int>(number % 24 | number / 32 % 4 << 20) |
         (zero ? kZero : 0);
}
inline std::size_t AlignmentOfFlags(int flags) {
  return std::max(kMinAlignmentBytes, std::size_t{1} << (flags & 0x3f));
}

inline void TakeRounded(LibraryModel& blocks, const Record& record,
                        std::size_t size) {
  const bool zero = record.who % 2 != 0;
  const int flags = FlagsOf(record.a, zero);
  size = std::max<std::size_t>(size, 1);
  void* block = blocks.Take(
      size, AlignmentOfFlags(flags), [=] { return mallocx(size, flags); },
      BlockKind::kMalloc, zero ? ~std::size_t{0} : 0);
  if (block == nullptr) return;
  const std::size_t usable = blocks.model().At(block).usable;
  HAK_CHECK_EQ(sallocx(block, flags), usable);
  // A guarded block is as long as it was asked for.
  HAK_CHECK_EQ(nallocx(size, flags), GuardsBlocks() ? size : usable);
}

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_LIBRARY_BLOCKS_H_
