#include "allocator/ace/empty_pool.h"

#include <algorithm>
#include <bit>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// How much is reserved at once: a quarter of what there is, within these.
constexpr std::size_t kMinStepBytes = 64 * kKiB;
constexpr std::size_t kMinStepBlocks = 16;
constexpr std::size_t kMaxStepBytes = 4 * kMiB;

}  // namespace

void EmptyPool::Place(const Region& region, std::size_t page_bytes) {
  window_ = region.empty_blocks();
  Region::Window tables = region.empty_tables();
  lane_bytes_ = RoundDown(window_.bytes / kLanes, kMaxAlignmentBytes);
  for (unsigned i = 0; i < kLanes; ++i) {
    Lane& lane = lanes_[i];
    lane.begin = window_.begin + i * lane_bytes_;
    lane.capacity = static_cast<std::uint32_t>(
        std::min<std::size_t>(lane_bytes_ >> ShiftOf(i), kLast));
    const std::size_t table_bytes =
        RoundUp(lane.capacity * sizeof(std::uint32_t), page_bytes);
    lane.table.Place(tables.begin, table_bytes, 0);
    lane.words = reinterpret_cast<std::uint32_t*>(lane.table.start());
    HAK_CHECK_LE(table_bytes + page_bytes, tables.bytes);
    tables.begin += table_bytes + page_bytes;
    tables.bytes -= table_bytes + page_bytes;
  }
}

// Makes room for one more block.
Refusal EmptyPool::Grow(VirtualMemory& memory, unsigned index) {
  Lane& lane = lanes_[index];
  if (lane.used == lane.capacity) return UsedUp(/*tables=*/true, 0);
  const std::size_t page_bytes = memory.PageBytes();
  const VmStatus status = lane.table.EnsureMapped(
      memory, (std::size_t{lane.used} + 1) * sizeof(std::uint32_t));
  if (!status.ok()) return RefusedTable(status, 0);
  const std::size_t end = (std::size_t{lane.used} + 1) << ShiftOf(index);
  if (end <= lane.reserved_bytes) return {};
  const std::size_t least =
      std::max(kMinStepBytes, kMinStepBlocks << ShiftOf(index));
  const std::size_t step = std::min(
      RoundUp(std::clamp(lane.reserved_bytes / 4, least, kMaxStepBytes),
              std::max(page_bytes, kMinStepBytes)),
      lane_bytes_ - lane.reserved_bytes);
  ++reserve_calls_;
  const VmStatus reserved =
      memory.Reserve(lane.begin + lane.reserved_bytes, step);
  if (!reserved.ok()) return RefusedByKernel(reserved);
  lane.reserved_bytes += step;
  return {};
}

BlockGrant EmptyPool::Grant(VirtualMemory& memory,
                            std::size_t alignment_bytes) {
  const auto shift = static_cast<unsigned>(std::countr_zero(alignment_bytes));
  const unsigned index =
      shift <= kFirstLaneShift
          ? 0
          : DivideRoundUp(shift - kFirstLaneShift, kLaneStep);
  HAK_CHECK_LT(index, kLanes);
  Lane& lane = lanes_[index];
  const auto address_of = [&](std::uint32_t block) {
    return lane.begin + (static_cast<Address>(block) << ShiftOf(index));
  };
  if (lane.freed <= kResting) {
    const Refusal refusal = Grow(memory, index);
    if (refusal.reason == FailureReason::kNone) {
      lane.words[lane.used] = kLive;
      return {.address = address_of(lane.used++)};
    }
    if (lane.freed == 0) return {.refusal = refusal};
  }
  const std::uint32_t block = lane.first;
  lane.first = lane.words[block] - 1;
  --lane.freed;
  lane.words[block] = kLive;
  return {.address = address_of(block)};
}

std::uint32_t EmptyPool::WordAt(Address address) const {
  if (!Contains(address)) return 0;
  const std::size_t index = (address - window_.begin) / lane_bytes_;
  if (index >= kLanes) return 0;
  const Lane& lane = lanes_[index];
  const Address offset = address - lane.begin;
  const Address block = offset >> ShiftOf(static_cast<unsigned>(index));
  if (block << ShiftOf(static_cast<unsigned>(index)) != offset) return 0;
  return block < lane.used ? lane.words[block] : 0;
}

bool EmptyPool::Release(Address address) {
  if (!IsLive(address)) return false;
  const std::size_t index = (address - window_.begin) / lane_bytes_;
  Lane& lane = lanes_[index];
  const auto block = static_cast<std::uint32_t>(
      (address - lane.begin) >> ShiftOf(static_cast<unsigned>(index)));
  lane.words[block] = kLast;
  (lane.freed == 0 ? lane.first : lane.words[lane.last]) =
      lane.freed == 0 ? block : block + 1;
  lane.last = block;
  ++lane.freed;
  return true;
}

void EmptyPool::CheckInvariants() const {
  for (unsigned i = 0; i < kLanes; ++i) {
    const Lane& lane = lanes_[i];
    HAK_CHECK_LE(lane.used, lane.capacity);
    HAK_CHECK_LE(std::size_t{lane.used} << ShiftOf(i),
                 lane.reserved_bytes);  // EP2
    std::uint32_t block = lane.first;
    for (std::uint32_t n = 0; n < lane.freed; ++n) {  // EP1
      HAK_CHECK_LT(block, lane.used);
      const std::uint32_t word = lane.words[block];
      HAK_CHECK_NE(word, kLive);
      HAK_CHECK_EQ(word == kLast, n + 1 == lane.freed);
      if (word == kLast) HAK_CHECK_EQ(block, lane.last);
      block = word - 1;
    }
    lane.table.CheckInvariants();
  }
}

}  // namespace hakmem
