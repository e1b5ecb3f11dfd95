// What hakmem says an address is, for reports and for checked copies, beside
// what a model knows.
//
// Owns: nothing. Called by: fuzz targets, with blocks of which no table is
// damaged. Thread-safety: none. Every difference ends the process.
#ifndef HAKMEM_FUZZ_ADDRESS_ORACLE_H_
#define HAKMEM_FUZZ_ADDRESS_ORACLE_H_

#include <algorithm>
#include <cstddef>

#include "allocator/ace/empty_pool.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/lookup/extents.h"
#include "allocator/lookup/lookup.h"
#include "allocator/reports/address_facts.h"
#include "allocator/superslab/region.h"

namespace hakmem {

template <const Config& kConfig>
class AddressOracle {
 public:
  AddressOracle(Allocator<kConfig>& allocator, const ModelHeap& model)
      : allocator_(allocator), model_(model) {}

  // Asks of any address, whatever the tables hold.
  void Ask(Address address) {
    (void)LookAround(allocator_.ace(), address);
    if (HasExtents(address)) (void)Finder().Find(address);
  }

  // All that is said of it must be so.
  void Check(Address address) {
    const Surroundings around = LookAround(allocator_.ace(), address);
    // Guarded blocks tell of themselves.
    if (allocator_.guards().Contains(reinterpret_cast<const void*>(address))) {
      HAK_CHECK(around.at.kind == AddressKind::kGuarded);
      return;
    }
    const Block* const block = model_.Around(address);
    if (block != nullptr) {
      HAK_CHECK(around.at.kind == AddressKind::kBlock && around.at.block.live);
      HAK_CHECK_EQ(around.at.block.start, block->first);
    } else if (const auto at = model_.blocks().find(address);
               at != model_.blocks().end() &&
               at->second.alignment <= EmptyPool::kMaxAlignmentBytes) {
      HAK_CHECK(around.at.kind == AddressKind::kEmpty);
    }
    CheckFacts(around.at, address);
    if (around.at.kind == AddressKind::kBlock) {
      const BlockFacts& facts = around.at.block;
      CheckFacts(around.before, facts.start - 1);
      CheckFacts(around.after, facts.start + Reach(facts));
    }
    if (HasExtents(address)) CheckExtent(address, block);
  }

 private:
  using Block = ModelHeap::Blocks::value_type;

  static std::size_t Reach(const BlockFacts& block) {
    return std::max(block.bytes, block.reach_bytes);
  }
  void CheckLive(const BlockFacts& block) const {
    const auto at = model_.blocks().find(block.start);
    HAK_CHECK(at != model_.blocks().end());
    HAK_CHECK_LE(at->second.usable, Reach(block));
    if (block.requested_bytes != BlockFacts::kNotKnown) {
      HAK_CHECK_EQ(block.requested_bytes, at->second.usable);
    }
  }
  void CheckFacts(const AddressFacts& facts, Address address) const {
    if (facts.kind == AddressKind::kBlock) {
      HAK_CHECK_LT(address - facts.block.start, Reach(facts.block));
      if (facts.block.live) CheckLive(facts.block);
    } else if (facts.has_before) {
      CheckLive(facts.before);
      // Reports say how far past the end of it.
      const std::size_t bytes =
          std::min(facts.before.bytes, facts.before.requested_bytes);
      HAK_CHECK_GE(address, facts.before.start + bytes);
    }
  }

  // Copies are checked where bounds are kept, and in the region alone.
  bool HasExtents(Address address) {
    if constexpr (!kConfig.check_copies) return false;
    const Region::Window blocks = allocator_.ace().region().windows()[0];
    return address - blocks.begin < blocks.bytes;
  }
  ExtentFinder Finder() { return ExtentFinder(allocator_.ace(), hints_); }
  void CheckExtent(Address address, const Block* block) {
    const ExtentFinder finder = Finder();
    const BlockExtent extent = finder.Find(address);
    if (extent.state == BlockExtent::State::kLive) {
      HAK_CHECK_EQ(model_.blocks().count(extent.start), 1U);
    }
    if (block == nullptr) {
      HAK_CHECK(!finder.IsInTiny(address, 1));
      HAK_CHECK(!finder.IsInPoolOrSpan(address, 1));
      return;
    }
    HAK_CHECK(extent.state == BlockExtent::State::kLive);
    HAK_CHECK_EQ(extent.start, block->first);
    HAK_CHECK_EQ(extent.size_bytes, block->second.usable);
    const std::size_t rest = extent.size_bytes - (address - extent.start);
    HAK_CHECK(finder.Allows(address, rest));
    HAK_CHECK(!finder.Allows(address, rest + 1));
    HAK_CHECK(!finder.IsInTiny(address, rest + 1));
    HAK_CHECK(!finder.IsInPoolOrSpan(address, rest + 1));
  }

  Allocator<kConfig>& allocator_;
  const ModelHeap& model_;
  ExtentHints hints_;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_ADDRESS_ORACLE_H_
