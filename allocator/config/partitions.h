// Partitions: which blocks lie together, by the allocation token that the
// program passes (clang's -fsanitize=alloc-token).
//
// Owns: nothing. Called by: ace, heap, core, frontend. Thread-safety:
// constants.
#ifndef HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_
#define HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_

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
  explicit constexpr PartitionTable(std::uint64_t partitions) {
    const std::uint64_t with_pointers = partitions / 2;
    const std::uint64_t without = partitions - 1 - with_pointers;
    constexpr unsigned kHalf = kHashes / 2;
    for (unsigned i = 0; i < kMostPartitions; ++i) {
      of_[i] = static_cast<Partition>(partitions == 1 ? 0 : i);
    }
    for (unsigned i = 0; i < kHalf; ++i) {
      Partition* const hashes = of_ + kMostPartitions;
      hashes[i] =
          static_cast<Partition>(without == 0 ? 0 : 1 + i * without / kHalf);
      hashes[kHalf + i] = static_cast<Partition>(
          with_pointers == 0 ? 0 : 1 + without + i * with_pointers / kHalf);
    }
  }

  constexpr Partition Of(std::uint64_t token) const {
    return of_[token < kMostPartitions ? token
                                       : kMostPartitions + (token >> kShift)];
  }

 private:
  // Hashes are told apart by their first four bits.
  static constexpr unsigned kShift = 60;
  static constexpr unsigned kHashes = 1U << (64 - kShift);

  Partition of_[kMostPartitions + kHashes] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_PARTITIONS_H_
