// Ranges that belong to a class, and their guard pages.

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};
constexpr Config kDelayed = {.name = "delayed",
                             .delay_reuse = true,
                             .separate_classes = true,
                             .guard_pages = true};
constexpr std::size_t kNoLimit = ~std::size_t{0};
const SizeClass kTinyA = ClassOf(64);
const SizeClass kTinyB = ClassOf(80);
const SizeClass kPoolA = ClassOf(4096);
const SizeClass kPoolB = ClassOf(5000);
const SizeClass kLongPool = ClassOf(60'000);

class AceRangesTest : public testing::Test {
 protected:
  AceRangesTest() { memory_.SetNowMs(10'000); }
  ~AceRangesTest() override { ace_->CheckInvariants(); }

  void Start(std::size_t heap_limit_bytes = kNoLimit,
             HugePages huge_pages = HugePages::kOff,
             const Config& config = kSeparate) {
    HeapOptions options;
    options.decay_ms = 500;
    options.heap_limit_bytes = heap_limit_bytes;
    options.huge_pages = static_cast<std::uint64_t>(huge_pages);
    ace_->Start(options, config);
  }
  UnitIndex Slab(SizeClass size_class) {
    return ace_->GrantSlab(IsTiny(size_class), SlabRange(size_class)).first;
  }
  UnitIndex Span(std::uint32_t units, std::size_t alignment = kUnitBytes) {
    return ace_->GrantSpan(units, alignment).first;
  }
  Address AddressOf(UnitIndex unit) {
    return ace_->region().coarse().UnitAddress(unit);
  }
  // The last page of a run.
  Address GuardOf(UnitIndex first, std::uint32_t units) {
    return AddressOf(first + units) - memory_.PageBytes();
  }
  std::uint64_t Protects() { return memory_.calls(VmCall::kProtect); }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

TEST_F(AceRangesTest, ARangeServesItsClassAlone) {
  Start();
  const UnitIndex tiny = Slab(kTinyA);
  const UnitIndex pool = Slab(kPoolA);
  const UnitIndex span = Span(4);
  ace_->ReleaseSlab(IsTiny(kTinyA), SlabRange(kTinyA), tiny);
  ace_->ReleaseSlab(IsTiny(kPoolA), SlabRange(kPoolA), pool);
  ace_->ReleaseSpan(span, 4);
  EXPECT_NE(Slab(kTinyB), tiny);
  EXPECT_NE(Slab(kPoolB), pool);
  const UnitIndex longer = Span(5);
  EXPECT_TRUE(longer >= span + 4 || longer + 5 <= span);
  const UnitIndex slab = Slab(kLongPool);
  EXPECT_TRUE(slab >= span + 4 || slab + 4 <= span);
  ace_->CheckInvariants();
  EXPECT_EQ(Slab(kTinyA), tiny);
  EXPECT_EQ(Slab(kPoolA), pool);
  EXPECT_EQ(Span(4), span);
}

TEST_F(AceRangesTest, ASpanGetsTheAlignmentThatItAsksFor) {
  Start();
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 20; ++i) spans.push_back(Span(3));
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, 3);
  ace_->CheckInvariants();
  for (std::size_t alignment = kUnitBytes; alignment <= 64 * kMiB;
       alignment *= 2) {
    EXPECT_EQ(AddressOf(Span(3, alignment)) % alignment, 0U) << alignment;
    ace_->CheckInvariants();
  }
}

// What is kept for other classes goes by what is in use: what was held for long
// and is freed in one go does not stay by half.
TEST_F(AceRangesTest, LittleStaysOfWhatWasHeldForLong) {
  Start();
  std::vector<UnitIndex> slabs;
  for (int i = 0; i < 1600; ++i) slabs.push_back(Slab(kTinyA));
  for (int i = 0; i < 2; ++i) {
    memory_.AdvanceMs(250);
    EXPECT_TRUE(ace_->TrimIfDue());
  }
  for (const UnitIndex slab : slabs)
    ace_->ReleaseSlab(IsTiny(kTinyA), SlabRange(kTinyA), slab);
  const Statistics statistics = ace_->Snapshot();
  // 100 MiB were granted: a sixteenth of that, 8 MiB, and what is no call.
  EXPECT_LE(statistics.cached_bytes, 16 * kMiB);
}

// Ranges that were carved together are used together.
TEST_F(AceRangesTest, NeighboursComeInOrder) {
  Start();
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 20; ++i) spans.push_back(Span(17));
  for (auto at = spans.rbegin(); at != spans.rend(); ++at) {
    ace_->ReleaseSpan(*at, 17);
  }
  ace_->UnmapCaches();
  for (const UnitIndex span : spans) EXPECT_EQ(Span(17), span);
}

TEST_F(AceRangesTest, AFreedSpanIsNotTheNextOne) {
  Start(kNoLimit, HugePages::kOff, kDelayed);
  std::set<UnitIndex> seen;
  for (int i = 0; i < 80; ++i) Span(4);
  for (int round = 0; round < 100; ++round) {
    const UnitIndex freed = Span(4);
    ace_->ReleaseSpan(freed, 4);
    ace_->CheckInvariants();
    const UnitIndex next = Span(4);
    EXPECT_NE(next, freed);
    ace_->ReleaseSpan(next, 4);
    seen.insert({freed, next});
  }
  // Of 80, five rest, and one more is in use.
  EXPECT_EQ(seen.size(), 6U);
}

TEST_F(AceRangesTest, WhatIsMuchOfAllDoesNotRest) {
  Start(kNoLimit, HugePages::kOff, kDelayed);
  const UnitIndex alone = Span(17);
  ace_->ReleaseSpan(alone, 17);
  EXPECT_EQ(Span(17), alone);
  for (int i = 0; i < 20; ++i) Span(17);
  ace_->ReleaseSpan(alone, 17);
  EXPECT_NE(Span(17), alone);
}

TEST_F(AceRangesTest, NothingRestsWhereMemoryIsShort) {
  Start(kNoLimit, HugePages::kOff, kDelayed);
  for (int i = 0; i < 80; ++i) Span(4);
  const std::set<UnitIndex> spans = {Span(4), Span(4), Span(4)};
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, 4);
  EXPECT_FALSE(spans.contains(Span(4)));
  ace_->UnmapCaches();
  EXPECT_EQ((std::set{Span(4), Span(4), Span(4)}), spans);
}

TEST_F(AceRangesTest, AGuardIsSetUpOnce) {
  Start();
  const Ace::Grant span = ace_->GrantSpan(4, kUnitBytes);
  const Ace::Grant slab = ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA));
  EXPECT_EQ(span.guard_bytes, memory_.PageBytes());
  EXPECT_EQ(slab.guard_bytes, memory_.PageBytes());
  EXPECT_TRUE(memory_.IsProtected(GuardOf(span.first, 4), memory_.PageBytes()));
  EXPECT_TRUE(memory_.IsProtected(GuardOf(slab.first, 1), memory_.PageBytes()));
  EXPECT_EQ(memory_.protected_bytes(), 2 * memory_.PageBytes());
  std::memset(reinterpret_cast<void*>(AddressOf(span.first)), 1,
              4 * kUnitBytes - span.guard_bytes);
  for (int round = 0; round < 5; ++round) {
    ace_->ReleaseSpan(span.first, 4);
    ace_->ReleaseSlab(IsTiny(kPoolA), SlabRange(kPoolA), slab.first);
    // What is given back to the kernel keeps its guard, too.
    if (round == 2) EXPECT_GT(ace_->PurgeAll(), 0U);
    const Ace::Grant again = ace_->GrantSpan(4, kUnitBytes);
    ASSERT_EQ(again.first, span.first);
    EXPECT_EQ(again.guard_bytes, span.guard_bytes);
    EXPECT_EQ(again.known_zero, round == 2);
    EXPECT_EQ(ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA)).guard_bytes,
              slab.guard_bytes);
    ace_->CheckInvariants();
  }
  EXPECT_EQ(Protects(), 2U);
}

TEST_F(AceRangesTest, TinySlabsHaveNoGuards) {
  Start();
  EXPECT_EQ(ace_->GrantSlab(IsTiny(kTinyA), SlabRange(kTinyA)).guard_bytes, 0U);
  EXPECT_EQ(Protects(), 0U);
}

TEST_F(AceRangesTest, GuardsStayWithinTheirShare) {
  memory_.SetMaxMappings(80);
  Start();
  std::vector<UnitIndex> slabs;
  std::size_t guarded = 0;
  for (int i = 0; i < 25; ++i) {
    const Ace::Grant grant = ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA));
    guarded += grant.guard_bytes != 0 ? 1 : 0;
    slabs.push_back(grant.first);
  }
  EXPECT_EQ(guarded, 10U);
  EXPECT_EQ(Protects(), 10U);
  // Ranges without a guard stay so.
  for (const UnitIndex slab : slabs)
    ace_->ReleaseSlab(IsTiny(kPoolA), SlabRange(kPoolA), slab);
  for (int i = 0; i < 25; ++i) {
    guarded -=
        ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA)).guard_bytes != 0 ? 1
                                                                            : 0;
  }
  EXPECT_EQ(guarded, 0U);
  EXPECT_EQ(Protects(), 10U);
}

TEST_F(AceRangesTest, ARefusedGuardIsTheLast) {
  Start();
  memory_.RefuseCall(3, ENOMEM, Refuse::kOnce, VmCall::kProtect);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const Ace::Grant grant = ace_->GrantSpan(4, kUnitBytes);
    ASSERT_NE(grant.first, kNoUnit);
    EXPECT_EQ(grant.guard_bytes, i < 3 ? memory_.PageBytes() : 0);
    EXPECT_EQ(memory_.IsAnyProtected(AddressOf(grant.first), 4 * kUnitBytes),
              i < 3);
    ace_->CheckInvariants();
  }
  EXPECT_EQ(Protects(), 3U);
}

TEST_F(AceRangesTest, HugePagesAreNotSplitForSlabs) {
  Start(kNoLimit, HugePages::kOn);
  EXPECT_EQ(ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA)).guard_bytes, 0U);
  EXPECT_EQ(ace_->GrantSpan(4, kUnitBytes).guard_bytes, memory_.PageBytes());
  EXPECT_EQ(ace_->GrantSpan(40, kUnitBytes).guard_bytes, memory_.PageBytes());
}

// Frames in which nothing is granted are unmapped under pressure, and their
// addresses serve their class alone when they are mapped again.
TEST_F(AceRangesTest, PressureUnmapsRangesForTheirClass) {
  Start();
  std::vector<UnitIndex> slabs;
  for (unsigned i = 0; i < 3 * kUnitsPerSuperSlab; ++i) {
    slabs.push_back(Slab(kPoolA));
  }
  const FrameIndex live_frame = FrameOfUnit(slabs.back());
  slabs.pop_back();
  for (const UnitIndex slab : slabs)
    ace_->ReleaseSlab(IsTiny(kPoolA), SlabRange(kPoolA), slab);
  const std::size_t mapped_bytes = ace_->mapped_bytes();
  const std::size_t unmapped_bytes = ace_->UnmapCaches();
  EXPECT_GE(unmapped_bytes, 2 * kSuperSlabBytes);
  EXPECT_EQ(ace_->mapped_bytes(), mapped_bytes - unmapped_bytes);
  ace_->CheckInvariants();
  for (unsigned i = 0; i < 4 * kUnitsPerSuperSlab; ++i) {
    EXPECT_GE(FrameOfUnit(Slab(kPoolB)), 3U);
  }
  // What is mapped comes first.
  for (unsigned i = 0; i < 3 * kUnitsPerSuperSlab - 1; ++i) {
    const Ace::Grant grant = ace_->GrantSlab(IsTiny(kPoolA), SlabRange(kPoolA));
    EXPECT_LT(FrameOfUnit(grant.first), 3U);
    EXPECT_EQ(FrameOfUnit(grant.first) == live_frame,
              i < kUnitsPerSuperSlab - 1);
    EXPECT_EQ(grant.guard_bytes, memory_.PageBytes());
    EXPECT_TRUE(
        memory_.IsProtected(GuardOf(grant.first, 1), memory_.PageBytes()));
  }
  ace_->CheckInvariants();
  EXPECT_GE(FrameOfUnit(Slab(kPoolA)), 3U);
}

TEST_F(AceRangesTest, ASpanGetsItsUnmappedFrameBack) {
  Start();
  const UnitIndex span = Span(40);
  const UnitIndex next = Span(20);
  ASSERT_EQ(next, span + 40);
  std::memset(reinterpret_cast<void*>(AddressOf(span)), 1, kUnitBytes);
  ace_->ReleaseSpan(span, 40);
  EXPECT_GE(ace_->UnmapCaches(), kSuperSlabBytes);
  ace_->CheckInvariants();
  memory_.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kMap);
  const UnitIndex other = Span(40);
  EXPECT_NE(other, span);
  const Ace::Grant again = ace_->GrantSpan(40, kUnitBytes);
  EXPECT_EQ(again.first, span);
  EXPECT_EQ(*reinterpret_cast<const char*>(AddressOf(span)), 0);
  ace_->CheckInvariants();
}

TEST_F(AceRangesTest, WhatOthersHaveTakenIsForgotten) {
  Start();
  const UnitIndex span = Span(40);
  ace_->ReleaseSpan(span, 40);
  ASSERT_GE(ace_->UnmapCaches(), 2 * kSuperSlabBytes);
  const Address taken = AddressOf(span) + kSuperSlabBytes;
  ASSERT_TRUE(memory_.MapAt(taken, memory_.PageBytes()).ok());
  for (int i = 0; i < 3; ++i) {
    const UnitIndex other = Span(40);
    ASSERT_NE(other, kNoUnit);
    EXPECT_NE(other, span);
    ace_->CheckInvariants();
  }
}

// Tables do not grow by memory that comes and goes under pressure.
TEST_F(AceRangesTest, PressureLosesNoAddresses) {
  Start(16 * kSuperSlabBytes);
  std::uint64_t metadata = 0;
  for (int round = 0; round < 5; ++round) {
    for (const SizeClass size_class : {kTinyA, kPoolA}) {
      std::vector<UnitIndex> slabs;
      for (UnitIndex slab = 0; slab != kNoUnit; slabs.push_back(slab)) {
        slab = Slab(size_class);
      }
      slabs.pop_back();
      EXPECT_EQ(slabs.size(), 16 * kUnitsPerSuperSlab);
      for (const UnitIndex slab : slabs) {
        ace_->ReleaseSlab(IsTiny(size_class), SlabRange(size_class), slab);
      }
      EXPECT_EQ(ace_->UnmapCaches(), 16 * kSuperSlabBytes);
    }
    const Statistics statistics = ace_->Snapshot();
    if (round == 0) metadata = statistics.metadata_bytes;
    EXPECT_EQ(statistics.metadata_bytes, metadata);
  }
}

TEST_F(AceRangesTest, MemoryOfOneClassServesAnotherUnderTheHeapLimit) {
  Start(4 * kSuperSlabBytes);
  for (int round = 0; round < 3; ++round) {
    for (const SizeClass size_class : {kPoolA, kTinyA, kLongPool, kPoolB}) {
      std::vector<UnitIndex> slabs;
      for (;;) {
        const UnitIndex slab = Slab(size_class);
        if (slab == kNoUnit) break;
        slabs.push_back(slab);
      }
      EXPECT_EQ(slabs.size() * kClassLayouts[size_class].slab_units,
                4 * kUnitsPerSuperSlab);
      for (const UnitIndex slab : slabs) {
        ace_->ReleaseSlab(IsTiny(size_class), SlabRange(size_class), slab);
      }
      ace_->CheckInvariants();
      EXPECT_EQ(ace_->UnmapCaches(), 4 * kSuperSlabBytes);
    }
  }
}

TEST_F(AceRangesTest, LosesNothingWhicheverUnmapIsRefused) {
  Start();
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 12; ++i) spans.push_back(Span(20));
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, 20);
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    memory_.RefuseCall(nth, ENOMEM, Refuse::kOnce, VmCall::kUnmap);
    ace_->UnmapCaches();
    ace_->CheckInvariants();
  }
  memory_.RefuseNothing();
  ace_->UnmapCaches();
  EXPECT_EQ(ace_->mapped_bytes(), 0U);
}

TEST_F(AceRangesTest, FiguresKnowWhatIsKept) {
  Start();
  const UnitIndex span = Span(64);
  Statistics before;
  ace_->AddStatistics(before);
  EXPECT_EQ(before.granted_bytes, 64 * kUnitBytes);
  ace_->ReleaseSpan(span, 64);
  Statistics after;
  ace_->AddStatistics(after);
  EXPECT_EQ(after.granted_bytes, 0U);
  EXPECT_EQ(after.cached_bytes, 64 * kUnitBytes);
  EXPECT_EQ(ace_->LargestFreeBytes(), 64 * kUnitBytes);
}

// --- Clearing ----------------------------------------------------------------

class AceClearTest : public AceRangesTest,
                     public testing::WithParamInterface<std::size_t> {};

// Pages at odd distances, so that gaps of all lengths come about.
TEST_P(AceClearTest, ClearsWhatWasTouchedAndTouchesNoMore) {
  Start();
  const std::size_t page = memory_.PageBytes();
  const std::uint32_t units = 48;
  const std::size_t bytes = units * kUnitBytes - page;
  const Address begin = AddressOf(Span(units));
  std::vector<unsigned char> resident(bytes / page);
  std::size_t touched = 0;
  for (std::size_t at = 0; at < bytes / page; at += 1 + at * GetParam() / 8) {
    reinterpret_cast<char*>(begin + at * page)[at % page] = 7;
    ++touched;
  }
  ace_->pages().ClearTouched(begin, bytes);
  ASSERT_TRUE(memory_.FindResident(begin, bytes, resident.data()).ok());
  std::size_t found = 0;
  for (const unsigned char page_is : resident) found += page_is;
  EXPECT_LE(found, 5 * touched);
  const char* const block = reinterpret_cast<const char*>(begin);
  for (std::size_t at = 0; at < bytes; ++at) ASSERT_EQ(block[at], 0) << at;
}

INSTANTIATE_TEST_SUITE_P(Distances, AceClearTest, testing::Values(0, 1, 8, 80));

// One call gives back what a look at some of its pages says is untouched.
TEST_F(AceRangesTest, ClearsALongSpanByWhatWasTouched) {
  Start();
  const std::size_t page = memory_.PageBytes();
  const std::uint32_t units = 512;
  const std::size_t bytes = units * kUnitBytes - page - 100;
  char* const block = reinterpret_cast<char*>(AddressOf(Span(units)));
  for (const bool refused : {false, true}) {
    block[5] = block[bytes - 1] = 7;
    if (refused) {
      memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn, VmCall::kPurge);
    }
    const std::uint64_t before = memory_.calls(VmCall::kPurge);
    ace_->pages().ClearTouched(reinterpret_cast<Address>(block), bytes);
    memory_.RefuseNothing();
    EXPECT_EQ(memory_.calls(VmCall::kPurge) == before + 1, !refused);
    EXPECT_EQ(block[5], 0);
    EXPECT_EQ(block[bytes - 1], 0);
  }
  std::memset(block, 7, bytes);
  const std::uint64_t before = memory_.calls(VmCall::kPurge);
  ace_->pages().ClearTouched(reinterpret_cast<Address>(block), bytes);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), before);
  EXPECT_EQ(FirstNonZero(block, bytes), bytes);
}

TEST_F(AceRangesTest, DropsATail) {
  Start();
  char* const block = reinterpret_cast<char*>(AddressOf(Span(16)));
  const std::size_t page = memory_.PageBytes();
  const std::size_t bytes = 16 * kUnitBytes - page;
  for (const std::size_t from : {bytes - 100, bytes / 2 + 5, std::size_t{10}}) {
    for (const bool refused : {false, true}) {
      std::memset(block, 1, bytes);
      if (refused) memory_.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kPurge);
      ace_->pages().DropTail(reinterpret_cast<Address>(block) + from,
                             bytes - from);
      memory_.RefuseNothing();
      EXPECT_EQ(block[from - 1], 1);
      for (std::size_t at = from; at < bytes; ++at) ASSERT_EQ(block[at], 0);
    }
  }
}

// As what is unmapped of a Huge block does, which is then empty already.
TEST_F(AceRangesTest, DropsALongTailInSlices) {
  constexpr std::size_t kBytes = 300 * kMiB;
  constexpr std::size_t kSliceBytes = 32 * kMiB;
  Start();
  const Address block = ace_->GrantHuge(kBytes, kSuperSlabBytes).address;
  Address at = RoundUp<Address>(block + 5, memory_.PageBytes());
  std::size_t slices = 0;
  memory_.WatchLongCalls([&](VmCall, Address begin, std::size_t bytes) {
    EXPECT_EQ(begin, at);
    EXPECT_LE(bytes, kSliceBytes);
    at = begin + bytes;
    ++slices;
  });
  ace_->pages().DropTail(block + 5, kBytes - 5);
  EXPECT_EQ(at, block + kBytes);
  EXPECT_EQ(slices, 10U);
  memory_.WatchLongCalls({});
}

}  // namespace
}  // namespace hakmem
