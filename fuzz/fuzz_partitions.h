// Where blocks lie that are asked for with an allocation token, beside where
// they must.
//
// Owns: which partition each unit has had. Called by: FuzzHeap. Thread-safety:
// none. Every difference ends the process.
#ifndef HAKMEM_FUZZ_FUZZ_PARTITIONS_H_
#define HAKMEM_FUZZ_FUZZ_PARTITIONS_H_

#include <cstdint>
#include <unordered_map>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/partitions.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/typed_blocks.h"
#include "allocator/superslab/region.h"

namespace hakmem {

template <const Config& kConfig>
class FuzzPartitions {
 public:
  // A new block is in its token's partition, or in the first: `may_be_untyped`,
  // or because no SuperSlab has it.
  void CheckNew(TestedAllocator<kConfig>& allocator, std::uint64_t token,
                const void* block, bool may_be_untyped) {
    Check(allocator, PartitionTable(test_options.partitions).Of(token), block,
          may_be_untyped);
  }
  // A block keeps its partition while a SuperSlab has it.
  void CheckMoved(TestedAllocator<kConfig>& allocator, Partition before,
                  const void* block) {
    Check(allocator, before, block, /*may_be_untyped=*/true);
  }

 private:
  void Check(TestedAllocator<kConfig>& allocator, Partition wanted,
             const void* block, bool may_be_untyped) {
    if constexpr (!kConfig.separate_types) return;
    const Partition found = PartitionAt(allocator.ace(), block);
    const Region& region = allocator.ace().region();
    const auto address = reinterpret_cast<Address>(block);
    const bool in_units =
        region.fine().Contains(address) || region.coarse().Contains(address);
    HAK_CHECK(found == wanted || (found == 0 && (may_be_untyped || !in_units)));
    if (!in_units) return;
    // For ever.
    const Address unit = RoundDown(address, kUnitBytes);
    HAK_CHECK_EQ(of_units_.emplace(unit, found).first->second, found);
  }

  // By a unit's address.
  std::unordered_map<Address, Partition> of_units_;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_FUZZ_PARTITIONS_H_
