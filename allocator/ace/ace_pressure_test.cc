// Ace with separate classes, where memory is short: what is kept for classes is
// unmapped, and mapped again SuperSlab by SuperSlab.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};
constexpr Config kClosed = {.name = "closed",
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};

enum class Order : std::uint8_t { kUp, kDown, kByTurns, kRandom };
constexpr Order kOrders[] = {Order::kUp, Order::kDown, Order::kByTurns,
                             Order::kRandom};

// A slab's class, or a span's length.
struct Kind {
  SizeClass size_class;
  std::uint32_t units;
};
Kind SlabKind(std::size_t bytes) {
  const SizeClass size_class = ClassOf(bytes);
  return {size_class, kClassLayouts[size_class].slab_units};
}
Kind SpanKind(std::uint32_t units) { return {kClassCount, RangeUnits(units)}; }
const Kind kKinds[] = {SlabKind(16),   SlabKind(64),     SlabKind(900),
                       SlabKind(4096), SlabKind(60'000), SpanKind(2),
                       SpanKind(5),    SpanKind(20),     SpanKind(40)};

struct Granted {
  Kind kind;
  UnitIndex first;
};

class AcePressureTest : public testing::Test {
 protected:
  explicit AcePressureTest(const Config& config = kSeparate) {
    Start(HeapOptions(), config);
  }
  ~AcePressureTest() override { ace_->CheckInvariants(); }

  void Start(const HeapOptions& options, const Config& config = kSeparate,
             std::size_t max_mappings = 0) {
    ace_.reset();
    ranges_ = {};
    // What the last one had is unmapped: where addresses are few, nothing may
    // lie in the way of the next.
    memory_.emplace();
    if (max_mappings != 0) memory_->SetMaxMappings(max_mappings);
    ace_ = std::make_unique<WholeAce>(*memory_, &ranges_);
    ace_->Start(options, config);
  }
  const Zone& ZoneOf(const Kind& kind) {
    return IsTiny(kind.size_class) && kind.size_class < kClassCount
               ? ace_->region().fine()
               : ace_->region().coarse();
  }
  UnitIndex Grant(const Kind& kind) {
    return kind.size_class < kClassCount
               ? ace_->GrantSlab(IsTiny(kind.size_class),
                                 SlabRange(kind.size_class))
                     .first
               : ace_->GrantSpan(kind.units, kUnitBytes).first;
  }
  void Release(const Granted& granted) {
    if (granted.kind.size_class < kClassCount) {
      ace_->ReleaseSlab(IsTiny(granted.kind.size_class),
                        SlabRange(granted.kind.size_class), granted.first);
    } else {
      ace_->ReleaseSpan(granted.first, granted.kind.units);
    }
  }
  std::vector<Granted> GrantBytes(const Kind& kind, std::size_t bytes) {
    std::vector<Granted> granted;
    for (std::size_t done = 0; done < bytes; done += kind.units * kUnitBytes) {
      granted.push_back({kind, Grant(kind)});
      EXPECT_NE(granted.back().first, kNoUnit);
    }
    return granted;
  }
  void ReleaseAll(std::vector<Granted> all, Order order) {
    if (order == Order::kDown) std::ranges::reverse(all);
    if (order == Order::kRandom) std::ranges::shuffle(all, random_);
    if (order == Order::kByTurns) {
      // One of each SuperSlab, then the next one of each.
      std::ranges::sort(all, {}, [](const Granted& granted) {
        return std::pair(UnitInFrame(granted.first), granted.first);
      });
    }
    for (const Granted& granted : all) Release(granted);
  }

  std::optional<FakeVirtualMemory> memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_;
  std::mt19937_64 random_{1};
};

// Whatever was freed, and in whichever order, another class has all of the
// limit.
TEST_F(AcePressureTest, AnotherClassIsServedUnderTheHeapLimit) {
  HeapOptions options;
  options.heap_limit_bytes = 32 * kMiB;
  for (const Config* config : {&kSeparate, &kClosed}) {
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
      for (const Order order : kOrders) {
        Start(options, *config);
        for (int round = 0; round < 3; ++round) {
          const Kind& kind = kKinds[(i + round) % std::size(kKinds)];
          const std::vector<Granted> all = GrantBytes(kind, 28 * kMiB);
          const Statistics statistics = ace_->Snapshot();
          EXPECT_EQ(statistics.granted_bytes,
                    all.size() * kind.units * kUnitBytes);
          EXPECT_LE(statistics.granted_bytes + statistics.cached_bytes,
                    32 * kMiB);
          ReleaseAll(all, order);
        }
        ace_->CheckInvariants();
      }
    }
  }
}

// Where the kernel is short of memory: what is idle is unmapped, and mapped
// again SuperSlab by SuperSlab.
TEST_F(AcePressureTest, ServesAgainAfterAllWasUnmapped) {
  for (const Kind& kind : kKinds) {
    for (const Order order : kOrders) {
      Start(HeapOptions());
      ReleaseAll(GrantBytes(kind, 30 * kMiB), order);
      const FrameIndex frames = ZoneOf(kind).frame_count();
      ace_->UnmapCaches();
      EXPECT_EQ(ace_->mapped_bytes(), 0U);
      GrantBytes(kind, 30 * kMiB / 15);
      EXPECT_LE(ace_->mapped_bytes(), 30 * kMiB / 15 + 4 * kSuperSlabBytes);
      GrantBytes(kind, 30 * kMiB / 15 * 14);
      EXPECT_LE(ZoneOf(kind).frame_count(), frames + 2);
      ace_->CheckInvariants();
    }
  }
}

// What a SuperSlab had beside its ranges is nobody's once it was unmapped. Each
// range is carved once, so pressure that comes again and again uses up no more.
TEST_F(AcePressureTest, PressureUsesUpFewAddresses) {
  Grant(SlabKind(64));
  FrameIndex frames = 0;
  for (std::uint32_t units = 1; units <= 12; ++units) {
    const Granted span = {SpanKind(units), Grant(SpanKind(units))};
    if (units == 1) frames = ace_->region().coarse().frame_count();
    if (units == 5) {
      // Which something else takes a part of.
      const Address next =
          ace_->region().coarse().UnitAddress(span.first + units);
      Release(span);
      ace_->UnmapCaches();
      ASSERT_TRUE(memory_->MapAt(next, memory_->PageBytes()).ok());
      continue;
    }
    for (int again = 0; again < 5; ++again) {
      Release(span);
      ace_->UnmapCaches();
      ace_->CheckInvariants();
      EXPECT_EQ(Grant(span.kind), span.first);
    }
    Release(span);
    ace_->UnmapCaches();
  }
  EXPECT_LE(ace_->region().coarse().frame_count(), frames + 12);
}

// What was mapped for a range alone, where the kernel had no room for more, is
// unmapped, too.
TEST_F(AcePressureTest, UnmapsPartsOfSuperSlabs) {
  for (const Config* config : {&kSeparate, &kClosed}) {
    Start(HeapOptions(), *config);
    std::vector<Granted> all = GrantBytes(SpanKind(40), 30 * kMiB);
    memory_->LimitBytes(memory_->mapped_bytes() + kSuperSlabBytes - 1);
    for (const Kind& kind : {SpanKind(1), SpanKind(5), SlabKind(900)}) {
      for (;;) {
        const UnitIndex first = Grant(kind);
        if (first == kNoUnit) break;
        all.push_back({kind, first});
      }
    }
    const Zone& coarse = ace_->region().coarse();
    EXPECT_NE(coarse.UnmappedUnits(coarse.frame_count() - 1), 0U);
    memory_->LimitBytes(~std::size_t{0});
    ReleaseAll(all, Order::kRandom);
    ace_->UnmapCaches();
    EXPECT_EQ(ace_->mapped_bytes(), 0U);
    ace_->CheckInvariants();
    const FrameIndex frames = coarse.frame_count();
    for (const Granted& granted : all) EXPECT_NE(Grant(granted.kind), kNoUnit);
    EXPECT_EQ(coarse.frame_count(), frames);
    ace_->CheckInvariants();
  }
}

// Each range by itself would take a mapping.
TEST_F(AcePressureTest, TakesNoMoreThanItsShareOfMappings) {
  constexpr std::size_t kMaxMappings = 640;
  Start(HeapOptions(), kSeparate, kMaxMappings);
  const Kind kind = SlabKind(64);
  const std::vector<Granted> all = GrantBytes(kind, 30 * kMiB);
  std::vector<Granted> freed[2];
  for (std::size_t i = 0; i < all.size(); ++i) freed[i % 2].push_back(all[i]);
  ReleaseAll(freed[0], Order::kRandom);
  ReleaseAll(freed[1], Order::kRandom);
  ace_->UnmapCaches();
  const std::size_t before = memory_->mappings();
  GrantBytes(kind, freed[1].size() * kUnitBytes);
  EXPECT_LE(memory_->mappings(), before + kMaxMappings / 16 + 30 / 2);
  ace_->CheckInvariants();
  GrantBytes(kind, freed[0].size() * kUnitBytes);
  EXPECT_EQ(ace_->region().fine().frame_count(), 15U);
}

TEST_F(AcePressureTest, LosesNothingWhicheverCallIsRefused) {
  for (std::uint64_t nth = 1; nth <= 12; ++nth) {
    Start(HeapOptions(), kClosed);
    std::vector<Granted> all;
    for (int i = 0; i < 12; ++i) {
      for (const Kind& kind : {SpanKind(40), SlabKind(900)}) {
        all.push_back({kind, Grant(kind)});
      }
    }
    ReleaseAll(all, Order::kRandom);
    ace_->UnmapCaches();
    const FrameIndex frames = ace_->region().coarse().frame_count();
    memory_->RefuseCall(nth, ENOMEM);
    std::vector<Granted> again;
    for (const Granted& granted : all) {
      again.push_back({granted.kind, Grant(granted.kind)});
      ace_->CheckInvariants();
    }
    memory_->RefuseNothing();
    for (const Granted& granted : again) {
      if (granted.first != kNoUnit) Release(granted);
    }
    ace_->UnmapCaches();
    EXPECT_EQ(ace_->mapped_bytes(), 0U);
    for (const Granted& granted : all) {
      EXPECT_NE(Grant(granted.kind), kNoUnit);
    }
    EXPECT_LE(ace_->region().coarse().frame_count(), frames + 2);
  }
}

// The ranges are on lists, through their units' descriptors, which are not
// looked at.
TEST_F(AcePressureTest, ARefusedCallLooksAtNoRange) {
  const Kind kind = SlabKind(900);
  ReleaseAll(GrantBytes(kind, 30 * kMiB), Order::kUp);
  const Zone& zone = ZoneOf(kind);
  const std::size_t page_bytes = memory_->PageBytes();
  const Address begin = RoundUp<Address>(
      reinterpret_cast<Address>(zone.UnitDescriptor(0)), page_bytes);
  const Address end = RoundDown<Address>(
      reinterpret_cast<Address>(
          zone.UnitDescriptor(FirstUnitOfFrame(zone.frame_count()))),
      page_bytes);
  ASSERT_LT(begin, end);
  const auto set_access = [&](int access) {
    ASSERT_EQ(mprotect(reinterpret_cast<void*>(begin), end - begin, access), 0);
  };
  set_access(PROT_NONE);
  EXPECT_GE(ace_->UnmapCaches(), 30 * kMiB);
  const std::uint64_t calls = memory_->calls(VmCall::kNone);
  EXPECT_EQ(ace_->UnmapCaches(), 0U);
  EXPECT_EQ(memory_->calls(VmCall::kNone), calls);
  set_access(PROT_READ | PROT_WRITE);
}

}  // namespace
}  // namespace hakmem
