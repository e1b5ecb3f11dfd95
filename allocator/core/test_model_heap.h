// A model of a heap: the blocks that are live, and what was written into them.
//
// Owns: the record, and the content of live blocks. Called by: tests of core,
// fuzzers. Thread-safety: none.
//
// Every difference between the allocator and the model ends the process by a
// failed HAK_CHECK.
//
// Invariants:
//   MH1: usable parts of live blocks do not overlap.
//   MH2: a live block holds what Add or Resize wrote into it.
#ifndef HAKMEM_ALLOCATOR_CORE_TEST_MODEL_HEAP_H_
#define HAKMEM_ALLOCATOR_CORE_TEST_MODEL_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"

namespace hakmem {

class ModelHeap {
 public:
  struct Block {
    std::size_t size;
    std::size_t alignment;
    std::size_t usable;
    std::uint64_t seed;
    BlockKind kind = BlockKind::kMalloc;
  };
  using Blocks = std::map<Address, Block>;

  bool empty() const { return blocks_.empty(); }
  std::size_t count() const { return blocks_.size(); }
  std::size_t live_bytes() const { return live_bytes_; }
  const Blocks& blocks() const { return blocks_; }

  // One of the live blocks; any number chooses.
  void* Pick(std::size_t number) const {
    HAK_CHECK(!empty());
    auto at = blocks_.begin();
    std::advance(at, number % blocks_.size());
    return reinterpret_cast<void*>(at->first);
  }
  // The live block of which `address` is a usable byte; null: none.
  const Blocks::value_type* Around(Address address) const {
    auto at = blocks_.upper_bound(address);
    if (at == blocks_.begin()) return nullptr;
    --at;
    return address - at->first < at->second.usable ? &*at : nullptr;
  }
  const Block& At(const void* pointer) const {
    const auto at = blocks_.find(reinterpret_cast<Address>(pointer));
    HAK_CHECK(at != blocks_.end());
    return at->second;
  }

  void Add(void* pointer, std::size_t size, std::size_t alignment,
           std::size_t usable) {
    Insert(pointer, {size, alignment, usable, ++next_seed_});
    Write(pointer, At(pointer));
  }
  void SetKind(const void* pointer, BlockKind kind) {
    blocks_.at(reinterpret_cast<Address>(pointer)).kind = kind;
  }
  // Before the block is freed.
  void Remove(const void* pointer) {
    CheckContent(pointer, At(pointer), At(pointer).size);
    live_bytes_ -= At(pointer).usable;
    blocks_.erase(reinterpret_cast<Address>(pointer));
  }
  // After a realloc that served. An alignment above the least is lost, and the
  // kind.
  void Resize(const void* old_pointer, void* pointer, std::size_t size,
              std::size_t usable) {
    const Block old = At(old_pointer);
    CheckContent(pointer, old, std::min(size, old.size));
    live_bytes_ -= old.usable;
    blocks_.erase(reinterpret_cast<Address>(old_pointer));
    Add(pointer, size, kMinAlignmentBytes, usable);
  }
  // Checks memory that must be zero, before Add.
  static void CheckZero(const void* pointer, std::size_t size) {
    ForEachPiece(size, size,
                 [&](std::size_t at, std::size_t bytes) HAK_NO_COVERAGE {
                   HAK_CHECK_EQ(Load(pointer, at, bytes), 0U);
                 });
  }
  void CheckAll() const {
    for (const auto& [address, block] : blocks_) {
      CheckContent(reinterpret_cast<const void*>(address), block, block.size);
    }
  }

 private:
  // The pieces that stand for the block's content, words and what is left of
  // one: all of a short block; of a long one its ends and places in between,
  // few enough not to touch much. Those that end behind `limit` are shortened.
  template <typename F>
  HAK_NO_COVERAGE static void ForEachPiece(std::size_t size, std::size_t limit,
                                           F f) {
    limit = std::min(size, limit);
    const auto piece = [&](std::size_t at) HAK_NO_COVERAGE {
      if (at < limit) f(at, std::min(kWordBytes, limit - at));
    };
    const std::size_t stride =
        size <= 4096
            ? kWordBytes
            : std::max<std::size_t>(512, RoundUp(size / 32, kWordBytes));
    for (std::size_t at = 0; at < limit; at += stride) piece(at);
    if (stride == kWordBytes) return;
    for (std::size_t at = RoundDown(size, kWordBytes) - 2 * kWordBytes;
         at < limit; at += kWordBytes) {
      piece(at);
    }
  }
  static constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  // The word `at` bytes from the start of a block's content.
  HAK_NO_COVERAGE static std::uint64_t WordAt(const Block& block,
                                              std::size_t at) {
    return (block.seed * 131 + at) * 0x9e3779b97f4a7c15;
  }
  HAK_NO_COVERAGE static std::uint64_t Load(const void* pointer, std::size_t at,
                                            std::size_t bytes) {
    std::uint64_t word = 0;
    const char* const from = static_cast<const char*>(pointer) + at;
    // No call, where sanitizers check calls.
    if (bytes == kWordBytes) {
      std::memcpy(&word, from, kWordBytes);
    } else {
      std::memcpy(&word, from, bytes);
    }
    return word;
  }
  HAK_NO_COVERAGE static void Write(void* pointer, const Block& block) {
    ForEachPiece(block.size, block.size,
                 [&](std::size_t at, std::size_t bytes) HAK_NO_COVERAGE {
                   const std::uint64_t word = WordAt(block, at);
                   std::memcpy(static_cast<char*>(pointer) + at, &word, bytes);
                 });
  }
  HAK_NO_COVERAGE static void CheckContent(const void* pointer,
                                           const Block& block,
                                           std::size_t limit) {
    ForEachPiece(block.size, limit,
                 [&](std::size_t at, std::size_t bytes) HAK_NO_COVERAGE {
                   const std::uint64_t word = WordAt(block, at);
                   HAK_CHECK_EQ(Load(pointer, at, bytes),
                                Load(&word, 0, bytes));
                 });
  }
  void Insert(const void* pointer, const Block& block) {
    const auto address = reinterpret_cast<Address>(pointer);
    HAK_CHECK(IsAligned<Address>(address, block.alignment));
    HAK_CHECK_GE(block.usable, block.size);
    const auto [at, is_new] = blocks_.emplace(address, block);
    HAK_CHECK(is_new);
    if (at != blocks_.begin()) {
      const auto before = std::prev(at);
      HAK_CHECK_LE(before->first + before->second.usable, address);
    }
    if (std::next(at) != blocks_.end()) {
      HAK_CHECK_LE(address + block.usable, std::next(at)->first);
    }
    live_bytes_ += block.usable;
  }

  Blocks blocks_;
  std::size_t live_bytes_ = 0;
  std::uint64_t next_seed_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_TEST_MODEL_HEAP_H_
