// Sizes and alignments around every class, unit, SuperSlab and limit: a block
// is aligned, has what was asked for and (where usable sizes are those of
// classes) no more than it must, overlaps no other, and keeps its content
// across every border that realloc takes it over.
//
// Header: 0 is 1 where blocks of hundreds of MiB may be asked for, in variants
// that clear what is freed; 1 HAKMEM_CLEAR and huge pages; 2 decay. Records: op
// % 8: 0 and 1 allocate, 2 zeroed, 3 aligned, 4 and 5 realloc, 6 free, 7 as
// many blocks of one size as fill slabs. The size is border b, of which `a`
// says how far from it; `who` holds the alignment and chooses the thread.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/slab/size_class.h"
#include "fuzz/fuzz_heap.h"
#include "fuzz/records.h"

namespace hakmem {
namespace {

constexpr std::size_t kPageBytes = 4096;
// Blocks from here on take long to clear, and are few.
constexpr std::size_t kLongBytes = 16 * kMiB;
constexpr int kMostLong = 3;

// The borders, in no order; a few bytes before or behind them.
std::size_t BorderedSize(const Record& record) {
  const std::size_t off = record.a % 5 - 2;
  const std::uint32_t which = record.b >> 3;
  switch (record.b % 8) {
    case 0:
    case 1:
    case 2:
      return ClassBytes(static_cast<SizeClass>(which % kClassCount)) + off;
    case 3:
      return (1 + which % 70) * kUnitBytes + off;
    case 4:
      return (1 + which % 3) * kSuperSlabBytes + off;
    case 5:
      return which % kMaxTinyBytes;
    case 6:
      return which % 32 * kPageBytes + off;
    default:
      break;
  }
  constexpr std::size_t kLimits[] = {
      0,
      kMaxTinyBytes,
      kMaxPoolBytes,
      kMaxPoolBytes + kUnitBytes,
      kMaxSpanBytes,
      kMaxSpanBytes + kPageBytes,
      kMaxSpanBytes + kSuperSlabBytes,
      std::size_t{1} << 42,
      std::size_t{1} << 63,
  };
  return kLimits[which % std::size(kLimits)] + off;
}

// What a block of this size and alignment has, found by counting.
[[maybe_unused]] std::size_t UsableOf(std::size_t size, std::size_t alignment) {
  size = std::max<std::size_t>(size, 1);
  if (size <= kMaxPoolBytes && alignment <= kMaxPoolBytes) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      const std::size_t bytes = ClassBytes(static_cast<SizeClass>(i));
      if (bytes >= size && bytes % alignment == 0) return bytes;
    }
  }
  return RoundUp(size, size <= kMaxSpanBytes ? kUnitBytes : kPageBytes);
}

HeapOptions OptionsOf(const Records& input) {
  HeapOptions options;
  // Much of a longer block is not cleared then.
  if (input.header(1) % 4 == 1) {
    options.clear_bytes = std::uint64_t{256} << input.header(1) / 16U;
  }
  options.huge_pages = (1 + input.header(1) / 4U) % 3;
  if (input.header(2) % 4 == 1) options.decay_ms = input.header(2) / 4U;
  return options;
}

template <const Config& kConfig>
class BoundaryRun {
 public:
  explicit BoundaryRun(const Records& input)
      : heap_(OptionsOf(input)),
        longs_left_(!kConfig.zero_on_free || input.header(0) == 1 ? kMostLong
                                                                  : 0) {}
  void Step(const Record& record);
  void Check() { heap_.Check(); }
  void Finish() { heap_.Finish(); }

 private:
  bool MayTake(std::size_t size) {
    return !heap_.full() && (size < kLongBytes || longs_left_-- > 0);
  }
  void CheckBlock(const void* block, std::size_t size, std::size_t alignment) {
    if (block == nullptr) {
      HAK_CHECK_GT(size, kMaxSpanBytes);
      return;
    }
    const std::size_t usable = heap_.model().At(block).usable;
    HAK_CHECK_GE(usable, size);
    HAK_CHECK_EQ(heap_.allocator().UsableSizeFor(size, alignment), usable);
    // The others answer what was asked for.
    if constexpr (!kConfig.check_bounds) {
      HAK_CHECK_EQ(usable, UsableOf(size, alignment));
    }
  }
  void Reallocate(const Record& record, std::size_t size) {
    void* block = heap_.Pick(record.a);
    if (block == nullptr) return;
    // A Huge block alone is more than full.
    if (size < kLongBytes ? heap_.full() : longs_left_-- <= 0) return;
    void* moved = heap_.Reallocate(record.who, block, size);
    // A block that stays may have more than it needs.
    if (moved == block) {
      HAK_CHECK_GE(heap_.model().At(block).usable, size);
      return;
    }
    // 0 counts as 1.
    CheckBlock(moved, std::max<std::size_t>(size, 1), kMinAlignmentBytes);
  }

  FuzzHeap<kConfig> heap_;
  int longs_left_;
};

template <const Config& kConfig>
void BoundaryRun<kConfig>::Step(const Record& record) {
  const std::size_t size = BorderedSize(record);
  const std::size_t alignment =
      std::max(kMinAlignmentBytes, std::size_t{1} << record.who / 4 % 24);
  const unsigned op = record.op % 8;
  if (op < 4 && !MayTake(size)) return;
  switch (op) {
    case 0:
    case 1:
      CheckBlock(heap_.Allocate(record.who, size), size, kMinAlignmentBytes);
      break;
    case 2:
      CheckBlock(heap_.AllocateZeroed(record.who, 1, size), size,
                 kMinAlignmentBytes);
      break;
    case 3:
      CheckBlock(heap_.AllocateAligned(record.who, alignment, size), size,
                 alignment);
      break;
    case 4:
    case 5:
      Reallocate(record, size);
      break;
    case 6:
      if (void* block = heap_.Pick(record.a); block != nullptr) {
        record.b % 2 == 0 ? heap_.Free(record.who, block)
                          : heap_.FreeSized(record.who, block);
      }
      break;
    default:
      if (size > kMaxPoolBytes) return;
      for (unsigned i = 0; i < record.a % 512U && !heap_.full(); ++i) {
        CheckBlock(heap_.Allocate(record.who, size), size, kMinAlignmentBytes);
      }
      break;
  }
}

template <const Config& kConfig>
void Run(Records input) {
  BoundaryRun<kConfig> run(input);
  Record record;
  while (input.Next(record)) run.Step(record);
  run.Check();
  run.Finish();
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Run<hakmem::HAKMEM_FUZZ_VARIANT>(hakmem::Records(data, size));
  return 0;
}
