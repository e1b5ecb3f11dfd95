// Any sequence of calls of all the core's entry points, on a kernel that
// refuses any of its own: no block overlaps another or loses its content, what
// fails says why, and every layer keeps its invariants.
//
// Header: 0 heap limit, 1 depot bytes, 2 decay, 3 huge pages, prefaulting and
// partitions, 4 largest allocation and what the kernel can do, 5 whether moves
// lose their target or their source, and the heap profile, 6 sampled guards, a
// limit of a control group or kinds that do not matter, 7 how many blocks
// guards may have, HAKMEM_CLEAR and a region of few addresses.
// Records: the operations of `Step`.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/partitions.h"
#include "allocator/core/live_count.h"
#include "allocator/core/prewarm.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/profile/heap_profile.h"
#include "allocator/reports/block_report.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "fuzz/fuzz_heap.h"
#include "fuzz/records.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr int kStepsPerCheck = 16;
// Each check looks at all blocks.
constexpr std::size_t kMostBlocks = 1024;

// What a control group allows; 0: the options have no such limit.
std::uint64_t memory_limit_bytes = 0;

HeapOptions OptionsOf(const Records& input) {
  HeapOptions options;
  if (input.header(0) % 4 == 1) {
    options.heap_limit_bytes = (1 + input.header(0) / 4U) * kMiB;
  }
  if (input.header(1) % 4 == 1) {
    options.depot_bytes = input.header(1) / 4U * 16 * kKiB;
  }
  options.decay_ms = input.header(2) == 0 ? 500 : input.header(2) * 8U - 8;
  options.huge_pages = input.header(3) % 3U;
  options.prefault = input.header(3) / 4 % 2U * (1 + input.header(3) / 8 % 2U);
  if (input.header(3) / 16 != 0) {
    options.partitions = 1 + input.header(3) / 16U % kMostPartitions;
  }
  if (input.header(4) % 4 == 1) {
    options.max_alloc_bytes = std::size_t{1} << (16 + input.header(4) / 4 % 16);
  }
  if (input.header(5) / 4 % 4 == 1) {
    options.profile_bytes = 1 + input.header(5) / 16U * 4 * kKiB;
  }
  if (input.header(6) % 4 == 1) {
    options.guard_sample = 1 + input.header(6) / 4U;
    options.guard_slots = 1 + input.header(7) % 64U;
  } else if (input.header(6) % 4 == 2) {
    memory_limit_bytes = (1 + input.header(6) / 4U) * kMiB;
    options.find_memory_limit = [] { return memory_limit_bytes; };
  } else if (input.header(6) % 4 == 3) {
    options.check_kinds = 0;
  }
  // 16 counts as 256.
  if (input.header(7) / 64 % 2 != 0) options.clear_bytes = 16;
  return options;
}

// Zones of 64 MiB, and 256 MiB for Huge blocks: what one zone has no addresses
// for is another's.
constexpr std::size_t kSmallRangeBytes = kGiB + kRegionFixedBytes;

// Changes what the kernel does from now on.
void DisturbKernel(const Record& record, FakeVirtualMemory& memory) {
  constexpr int kErrors[] = {ENOMEM, EAGAIN, EPERM, EFAULT};
  switch (record.a % 8) {
    case 0:
      memory.RefuseNothing();
      memory.LimitBytes(~std::size_t{0});
      memory.LimitMappings(~std::size_t{0});
      break;
    case 1:
      memory.LimitBytes(record.b % 256 * kMiB);
      break;
    case 2:
      memory.LimitMappings(record.b % 64);
      break;
    default:
      memory.RefuseCall(
          1 + record.b % 16, kErrors[record.b / 16 % 4],
          record.b / 64 % 4 == 0 ? Refuse::kFromThenOn : Refuse::kOnce,
          static_cast<VmCall>(record.b / 256 % 6));
      break;
  }
}

template <const Config& kConfig>
class ApiRun {
 public:
  explicit ApiRun(const Records& input) : heap_(OptionsOf(input)) {
    if (input.header(5) % 2 != 0) heap_.memory().LoseTargetOfRefusedMoves();
    if (input.header(5) / 2 % 2 != 0) heap_.memory().LoseSourceOfMoves();
    if (input.header(4) / 64 % 2 != 0) heap_.memory().UseGuardRegions();
    if (input.header(4) / 128 != 0) heap_.memory().HideResident();
    if (input.header(0) % 4 == 1) heap_.MayRunShort();
    if (input.header(7) / 128 != 0) {
      const Address begin = heap_.memory().RegionRange().begin;
      heap_.memory().SetRegionRange({begin, begin + kSmallRangeBytes});
      heap_.MayRunShort();
    }
  }
  void Step(const Record& record);
  void Check() { heap_.Check(); }
  void Finish() { heap_.Finish(); }

 private:
  void Take(const Record& record, unsigned how);
  void Give(const Record& record, unsigned how);
  void Other(const Record& record, unsigned how);
  void Seldom(const Record& record);
  void TakeAddresses(const Record& record);
  void Rare(const Record& record, unsigned how);
  void TakeTyped(const Record& record, unsigned how);
  void Limit(const Record& record);
  void Look(const Record& record);
  // A program that frees a block when memory is short, now and then.
  void ServeFailures(const Record& record) {
    retries_ = static_cast<int>(record.a % 4);
    test_handler = [this](const FailureEvent& event) {
      HAK_CHECK(event.detail != FailureDetail::kNone);
      if (retries_-- <= 0) return false;
      heap_.allocator().upkeep().Maintain();
      return true;
    };
  }

  FuzzHeap<kConfig> heap_;
  int retries_ = 0;
};

template <const Config& kConfig>
void ApiRun<kConfig>::Take(const Record& record, unsigned how) {
  if (heap_.full()) return;
  const std::size_t size = SizeOf(record.b);
  switch (how) {
    case 0:
    case 1:
    case 2:
      heap_.Allocate(record.who, size);
      break;
    case 3:
      heap_.AllocateZeroed(record.who, 1, size);
      break;
    case 4:
      heap_.AllocateZeroed(record.who, record.a, size % 4099);
      break;
    case 5:
      heap_.AllocateAligned(record.who, std::size_t{1} << record.a % 26, size);
      break;
    case 6:
      heap_.AllocateInParts(record.who, size);
      break;
    default:
      if (void* block = heap_.Pick(record.a); block != nullptr) {
        heap_.Reallocate(record.who, block, size);
      }
      break;
  }
}

template <const Config& kConfig>
void ApiRun<kConfig>::Give(const Record& record, unsigned how) {
  void* block = heap_.Pick(record.a);
  if (block == nullptr) return;
  switch (how) {
    case 0:
    case 1:
    case 2:
      heap_.Free(record.who, block);
      break;
    case 3:
      heap_.FreeSized(record.who, block);
      break;
    case 4:
      heap_.CheckUsable(record.who, block);
      break;
    case 5:
      // To less than it has: served, whatever the kernel says.
      heap_.Reallocate(
          record.who, block,
          record.b % std::max<std::size_t>(heap_.model().At(block).size, 1));
      break;
    default:
      for (unsigned i = 0; i < record.b % 128 && heap_.Pick(i); ++i) {
        heap_.Free(record.who, heap_.Pick(record.a));
      }
      break;
  }
}

template <const Config& kConfig>
void ApiRun<kConfig>::Other(const Record& record, unsigned how) {
  auto& allocator = heap_.allocator();
  auto*& self = heap_.thread(record.who);
  switch (how) {
    case 0:
      heap_.EndThread(record.who, record.a % 2 == 0);
      break;
    case 1:
      allocator.upkeep().Purge(self);
      break;
    case 2:
      allocator.upkeep().Maintain();
      break;
    case 3:
      Prewarm(allocator, self, SizeOf(record.b) % (kMaxPoolBytes + 2),
              record.a % 64);
      break;
    case 4:
      DisturbKernel(record, heap_.memory());
      break;
    case 5:
      heap_.memory().AdvanceMs(record.a);
      break;
    case 6:
      if (record.a % 4 == 0) {
        heap_.BecomeChild(record.who);
      } else {
        allocator.PrepareFork();
        allocator.ParentAfterFork();
      }
      break;
    case 7:
      Seldom(record);
      break;
    default:
      ServeFailures(record);
      break;
  }
}

template <const Config& kConfig>
void ApiRun<kConfig>::Seldom(const Record& record) {
  auto& upkeep = heap_.allocator().upkeep();
  const std::size_t size = SizeOf(record.b);
  const unsigned count = 1 + record.a / 8U % 512;
  switch (record.a % 8) {
    case 1:
      // More than stay warm when they end, or a few.
      heap_.RunCrowd(record.a / 8 % 4 == 0 ? 129 + record.a / 32U % 32
                                           : 1 + record.a / 32U % 16,
                     size % (kMaxTinyBytes + 1));
      break;
    case 3:
      heap_.LookOn(record.who);
      break;
    case 4:
      // Enough for depots and spare magazines to fill.
      for (unsigned i = 0; i < count && heap_.model().count() < kMostBlocks &&
                           !heap_.full() && size <= kMaxPoolBytes;
           ++i) {
        heap_.Allocate(record.who, size);
      }
      break;
    case 5:
      heap_.allocator().ace().SetDecay(record.b % 1000);
      break;
    case 6:
      for (unsigned i = 0; i < count && heap_.Pick(0) != nullptr; ++i) {
        heap_.Free(record.who, heap_.Pick(record.b % 4));
      }
      break;
    case 7:
      TakeAddresses(record);
      break;
    default:
      HAK_CHECK_LE(upkeep.Snapshot().granted_bytes,
                   upkeep.Snapshot().mapped_bytes);
      upkeep.Figures();
      break;
  }
}

// Somebody else maps memory where a zone will grow, or all that a small one has
// left.
template <const Config& kConfig>
void ApiRun<kConfig>::TakeAddresses(const Record& record) {
  heap_.MayRunShort();
  heap_.allocator().EnsureStarted();
  Region& region = heap_.allocator().ace().region();
  const std::size_t some = (1 + record.b / 8 % 8) * kSuperSlabBytes;
  if (record.a / 8 % 4 == 0) {
    const std::size_t at = record.b / 64 % 128 * kSuperSlabBytes;
    (void)heap_.memory().MapAt(region.huge().begin + at, some);
    return;
  }
  const Zone& zone = record.a / 8 % 2 == 0 ? region.fine() : region.coarse();
  const FrameIndex first = zone.frame_count() + record.b % 4;
  if (first >= zone.capacity_frames()) return;
  const std::size_t left = (zone.capacity_frames() - first) * kSuperSlabBytes;
  const bool all = record.b / 4 % 2 != 0 && left <= kGiB;
  (void)heap_.memory().MapAt(zone.FrameAddress(first),
                             all ? left : std::min(left, some));
}

template <const Config& kConfig>
void ApiRun<kConfig>::TakeTyped(const Record& record, unsigned how) {
  const std::size_t size = SizeOf(record.b);
  const std::uint64_t token = TokenOf(record.a);
  const unsigned rest = record.a / 16U;
  switch (how) {
    case 0:
      heap_.AllocateTyped(record.who, token, kMinAlignmentBytes, size,
                          KindOf(rest));
      break;
    case 1:
      heap_.AllocateTyped(record.who, token,
                          std::size_t{1} << (4 + rest / 8 % 22), size,
                          KindOf(rest));
      break;
    case 2:
      heap_.AllocateTyped(record.who, token, kMinAlignmentBytes, size,
                          BlockKind::kMalloc, /*zeroed=*/true);
      break;
    default:
      for (unsigned i = 0; i <= rest % 512 && size <= kMaxPoolBytes &&
                           heap_.model().count() < kMostBlocks && !heap_.full();
           ++i) {
        heap_.AllocateTyped(record.who, token, kMinAlignmentBytes, size);
      }
      break;
  }
}

// The kernel, or a control group, has less for a while.
template <const Config& kConfig>
void ApiRun<kConfig>::Limit(const Record& record) {
  switch (record.a % 3) {
    case 0:
      heap_.memory().LimitBlocks(record.b % 2048 * kMiB);
      break;
    case 1:
      heap_.memory().SetMaxMappings(record.b % 65'536);
      break;
    default:
      memory_limit_bytes = record.b % 256 * kMiB;
      break;
  }
}

// Questions that change nothing.
template <const Config& kConfig>
void ApiRun<kConfig>::Look(const Record& record) {
  auto& allocator = heap_.allocator();
  allocator.EnsureStarted();
  switch (record.a % 4) {
    case 0:
      HAK_CHECK_EQ(allocator.CheckBlocks(heap_.thread(record.who), nullptr,
                                         PointerUse::kExitCheck),
                   0U);
      break;
    case 1: {
      const LiveCount live = CountLive(allocator.ace(), allocator.guards());
      // Those of no bytes may have no memory.
      HAK_CHECK_LE(live.blocks, heap_.model().count());
      HAK_CHECK_GE(live.bytes, heap_.model().live_bytes());
      break;
    }
    case 2: {
      const ProfileTotals totals = allocator.profile().Totals();
      ProfileSite site;
      std::uint64_t samples = 0;
      for (std::uint32_t i = 0; allocator.profile().CopySite(i, site); ++i) {
        samples += site.live.samples;
      }
      HAK_CHECK_LE(samples, totals.live.samples);
      break;
    }
    default:
      HAK_CHECK_EQ(allocator.CheckHeap(heap_.thread(record.who)), 0U);
      break;
  }
}

template <const Config& kConfig>
void ApiRun<kConfig>::Rare(const Record& record, unsigned how) {
  void* const block = heap_.Pick(record.a);
  switch (how) {
    case 0:
    case 1:
    case 2:
    case 3:
      if (!heap_.full()) TakeTyped(record, how);
      break;
    case 4:
      if (heap_.full()) break;
      heap_.AllocateCleared(record.who, std::size_t{1} << (4 + record.a % 22),
                            SizeOf(record.b));
      break;
    case 5:
      if (block != nullptr) heap_.FreeRounded(record.who, block, record.b);
      break;
    case 6:
      Limit(record);
      break;
    default:
      Look(record);
      break;
  }
}

template <const Config& kConfig>
void ApiRun<kConfig>::Step(const Record& record) {
  const unsigned op = record.op % 32;
  if (op < 8) {
    Take(record, op);
  } else if (op < 15) {
    Give(record, op - 8);
  } else if (op < 24) {
    Other(record, op - 15);
  } else {
    Rare(record, op - 24);
  }
}

template <const Config& kConfig>
void Run(Records input) {
  ApiRun<kConfig> run(input);
  Record record;
  for (int step = 1; input.Next(record); ++step) {
    run.Step(record);
    if (step % kStepsPerCheck == 0) run.Check();
  }
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
