// Partitions: which blocks lie together, by the allocation token that the
// program passes (clang's -fsanitize=alloc-token).
//
// Owns: nothing. Called by: ace, heap, core, frontend. Thread-safety:
// constants.
#ifndef HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_
#define HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_

#include <atomic>
#include <cstdint>

namespace hakmem {

// Partition 0 has the blocks of which nothing is known: those without a token,
// and those with token 0, which clang passes where it finds no type.
using Partition = std::uint8_t;
inline constexpr std::uint64_t kMostPartitions = 8;

// Which partition each token has.
//
// Tokens below kMostPartitions are numbers that the program was compiled to
// have few of (-falloc-token-max): one each. Others are hashes of 64 bits, the
// upper half of types that hold pointers. So many partitions share these, the
// upper half of them those with pointers. With one partition all are in it.
class PartitionTable {
 public:
  // All are in the first.
  constexpr PartitionTable() = default;
  explicit PartitionTable(std::uint64_t partitions) { Start(partitions); }

  // A thread that looks meanwhile has no heap yet, of any partition.
  void Start(std::uint64_t partitions) {
    const std::uint64_t with_pointers = partitions / 2;
    const std::uint64_t without = partitions - 1 - with_pointers;
    constexpr unsigned kHalf = kHashes / 2;
    for (unsigned i = 0; i < kMostPartitions; ++i) {
      Put(i, partitions == 1 ? 0 : i);
    }
    for (unsigned i = 0; i < kHalf; ++i) {
      const unsigned at = kMostPartitions + i;
      Put(at, without == 0 ? 0 : 1 + i * without / kHalf);
      Put(at + kHalf,
          with_pointers == 0 ? 0 : 1 + without + i * with_pointers / kHalf);
    }
  }

  Partition Of(std::uint64_t token) const {
    return of_[token < kMostPartitions ? token
                                       : kMostPartitions + (token >> kShift)]
        .load(std::memory_order_relaxed);
  }

 private:
  // Hashes are told apart by their first four bits.
  static constexpr unsigned kShift = 60;
  static constexpr unsigned kHashes = 1U << (64 - kShift);

  void Put(unsigned index, std::uint64_t partition) {
    of_[index].store(static_cast<Partition>(partition),
                     std::memory_order_relaxed);
  }

  std::atomic<Partition> of_[kMostPartitions + kHashes] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_
