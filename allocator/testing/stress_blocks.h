// Blocks of the stress workload, and what they are shared through.
//
// Owns: the budget's counter and the exchange's shards. Called by:
// stress_workload. Thread-safety: Budget and Exchange any thread; Block is a
// value.
//
// Invariants:
//   SB1: a block is in one lane's table or in one shard, never in both.
//   SB2: what the budget has taken is at least the bytes of all blocks held,
//   and
//       never more than its limit.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_BLOCKS_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_BLOCKS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "allocator/testing/stress_random.h"

namespace hakmem::stress {

struct Block {
  void* pointer = nullptr;
  std::size_t size = 0;
  std::size_t alignment = 0;  // 0: from malloc, calloc or realloc
  std::uint64_t id = 0;       // lane << 48 | operation that made it
};

class Budget {
 public:
  explicit Budget(std::size_t limit) : limit_(limit) {}

  // Before an allocation; false when it would be too much.
  bool Take(std::size_t bytes) {
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes,
                                           std::memory_order_relaxed));
    return true;
  }

  // After it: what was taken is live, or the allocation has failed.
  void Keep(std::size_t bytes) {
    const std::size_t live =
        live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(
                              peak, live, std::memory_order_relaxed)) {
    }
  }
  void Cancel(std::size_t bytes) {
    taken_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  // Bytes that were kept have been freed.
  void Return(std::size_t bytes) {
    live_.fetch_sub(bytes, std::memory_order_relaxed);
    taken_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  // All written and read by all lanes.
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> peak_{0};
};

// Where lanes leave blocks for other lanes. Allocates nothing once it is made,
// because the allocator under stress may be out of memory.
class Exchange {
 public:
  Exchange() {
    for (Shard& shard : shards_) shard.blocks.reserve(kShardCapacity);
  }

  // False when the shard it came upon is full.
  bool Put(const Block& block, Random& random) {
    Shard& shard = shards_[random.Below(kShards)];
    const std::lock_guard lock(shard.mutex);
    if (shard.blocks.size() == kShardCapacity) return false;
    shard.blocks.push_back(block);
    return true;
  }

  // Nothing when the shard it came upon is empty.
  std::optional<Block> Get(Random& random) {
    Shard& shard = shards_[random.Below(kShards)];
    const std::lock_guard lock(shard.mutex);
    if (shard.blocks.empty()) return std::nullopt;
    // Any of them, so that blocks are not freed in the order they were made.
    std::swap(shard.blocks[random.Below(shard.blocks.size())],
              shard.blocks.back());
    const Block block = shard.blocks.back();
    shard.blocks.pop_back();
    return block;
  }

  // Takes every block, once no lane runs.
  template <typename Use>
  void Drain(Use use) {
    for (Shard& shard : shards_) {
      for (const Block& block : shard.blocks) use(block);
      shard.blocks.clear();
    }
  }

 private:
  static constexpr std::size_t kShards = 8;
  static constexpr std::size_t kShardCapacity = 512;
  struct Shard {
    std::mutex mutex;
    std::vector<Block> blocks;  // guarded by mutex
  };
  std::array<Shard, kShards> shards_;
};

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_BLOCKS_H_
