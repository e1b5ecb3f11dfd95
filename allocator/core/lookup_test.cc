#include "allocator/lookup/lookup.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSpanBytes = 4 * kUnitBytes;
constexpr std::size_t kHugeBytes = kMaxSpanBytes + kSuperSlabBytes;

class LookUpTest : public testing::Test {
 protected:
  Address Allocate(std::size_t bytes) {
    return reinterpret_cast<Address>(
        test_.allocator->Allocate(test_.self, bytes));
  }
  void Free(Address block) {
    test_.allocator->Free(test_.self, reinterpret_cast<void*>(block));
  }
  Surroundings Around(Address address) {
    return LookAround(test_.allocator->ace(), address);
  }
  AddressFacts At(Address address) { return Around(address).at; }

  TestAllocator<kRelease> test_;
};

void ExpectBlock(const AddressFacts& facts, Address start, std::size_t bytes,
                 const char* state) {
  ASSERT_EQ(facts.kind, AddressKind::kBlock);
  EXPECT_EQ(facts.block.start, start);
  EXPECT_EQ(facts.block.bytes, bytes);
  EXPECT_STREQ(facts.block.state, state);
  EXPECT_EQ(facts.block.live, std::string(state) == "live");
}

TEST_F(LookUpTest, BeforeTheFirstCallNothingIsHakmems) {
  EXPECT_EQ(At(0x1234).kind, AddressKind::kForeign);
}

TEST_F(LookUpTest, EveryByteOfABlockOfASlab) {
  for (const std::size_t bytes :
       {std::size_t{16}, std::size_t{80}, std::size_t{1024}, std::size_t{5120},
        std::size_t{65536}}) {
    const Address block = Allocate(bytes);
    for (Address at = block; at < block + bytes; at += 7) {
      ExpectBlock(At(at), block, bytes, "live");
    }
    ExpectBlock(At(block + bytes - 1), block, bytes, "live");
    EXPECT_EQ(At(block).block.owner_heap, 1U);
    Free(block);
    ExpectBlock(At(block + 3), block, bytes, "free");
  }
}

TEST_F(LookUpTest, NeighboursInTheSlab) {
  const Address first = Allocate(64);
  const Address second = Allocate(64);
  const Address third = Allocate(64);
  ASSERT_EQ(second, first + 64);
  ASSERT_EQ(third, second + 64);
  Free(third);
  const Surroundings around = Around(second + 10);
  ExpectBlock(around.at, second, 64, "live");
  ExpectBlock(around.before, first, 64, "live");
  ExpectBlock(around.after, third, 64, "free");
}

TEST_F(LookUpTest, PlacesThatWereNeverUsed) {
  const Address block = Allocate(48);
  const Address unit = block & ~(Address{kUnitBytes} - 1);
  ExpectBlock(At(unit + 48 * 1000), unit + 48 * 1000, 48, "never used");
  // 1,365 blocks of 48 bytes leave 16 bytes.
  const AddressFacts end = At(unit + kUnitBytes - 1);
  EXPECT_EQ(end.kind, AddressKind::kSlabEnd);
  EXPECT_FALSE(end.has_before);
}

TEST_F(LookUpTest, SpansAndWhatIsBehindThem) {
  const Address span = Allocate(kSpanBytes);
  ExpectBlock(At(span), span, kSpanBytes, "live");
  ExpectBlock(At(span + kSpanBytes - 1), span, kSpanBytes, "live");
  const AddressFacts behind = At(span + kSpanBytes + 5);
  EXPECT_EQ(behind.kind, AddressKind::kFreeMemory);
  ASSERT_TRUE(behind.has_before);
  EXPECT_EQ(behind.before.start, span);
  Free(span);
  ExpectBlock(At(span + 100), span, kSpanBytes, "released");
  ExpectBlock(At(span + kSpanBytes - 1), span, kSpanBytes, "released");
}

// What begins there is longer than the gap, and not what the address was in.
TEST_F(LookUpTest, AReleasedSpanEndsWhereALiveOneBegins) {
  const Address first = Allocate(kSpanBytes);
  const Address second = Allocate(kSpanBytes);
  ASSERT_EQ(second, first + kSpanBytes);
  Free(second);
  Free(first);
  // The thread keeps them for itself.
  test_.allocator->upkeep().Purge(test_.self);
  const Address both = Allocate(kSpanBytes + kUnitBytes);
  ASSERT_EQ(both, first);
  const AddressFacts behind = At(second + 2 * kUnitBytes);
  EXPECT_EQ(behind.kind, AddressKind::kFreeMemory);
  ASSERT_TRUE(behind.has_before);
  EXPECT_EQ(behind.before.start, both);
}

TEST_F(LookUpTest, BehindTheLastFrameOfAZone) {
  // All of the frames that are mapped for it.
  const Address span = Allocate(64 * kSuperSlabBytes);
  Address end = span + 64 * kSuperSlabBytes;
  while (At(end).kind == AddressKind::kFreeMemory) end += kSuperSlabBytes;
  const AddressFacts facts = At(end);
  EXPECT_EQ(facts.kind, AddressKind::kUnmapped);
  EXPECT_EQ(facts.has_before, end == span + 64 * kSuperSlabBytes);
}

TEST_F(LookUpTest, HugeBlocks) {
  const Address block = Allocate(kHugeBytes);
  ExpectBlock(At(block + kHugeBytes - 1), block, kHugeBytes, "live");
  // Whoever changes the tables at the moment.
  test_.allocator->ace().HoldStill([&] {
    ExpectBlock(At(block + kHugeBytes - 1), block, kHugeBytes, "live");
  });
  const AddressFacts behind = At(block + kHugeBytes + 16);
  EXPECT_EQ(behind.kind, AddressKind::kUnmapped);
  ASSERT_TRUE(behind.has_before);
  EXPECT_EQ(behind.before.start, block);
  Free(block);
  ExpectBlock(At(block), block, kHugeBytes, "released");
  ExpectBlock(At(block + kHugeBytes / 2), block, kHugeBytes, "released");
  EXPECT_EQ(At(block + kHugeBytes).kind, AddressKind::kUnmapped);
  EXPECT_FALSE(At(block + kHugeBytes).has_before);
}

TEST(LookUp, HakmemsTables) {
  FakeVirtualMemory memory;
  const auto ace = std::make_unique<WholeAce>(memory);
  ace->Start(HeapOptions());
  const Region& region = ace->region();
  const auto kind = [&](Address address) { return LookUp(*ace, address).kind; };
  EXPECT_EQ(kind(reinterpret_cast<Address>(region.fine().view().headers)),
            AddressKind::kTable);
  EXPECT_EQ(kind(reinterpret_cast<Address>(&region.coarse().unit_record(0))),
            AddressKind::kTable);
  EXPECT_EQ(kind(region.huge_tables().begin), AddressKind::kTable);
  EXPECT_EQ(kind(region.heap_window(0).begin), AddressKind::kTable);
  EXPECT_EQ(kind(region.heap_window(Region::kGuardWindow).begin),
            AddressKind::kGuarded);
  EXPECT_EQ(kind(region.fine().view().base), AddressKind::kUnmapped);
}

TEST_F(LookUpTest, OtherMemory) {
  Allocate(64);
  int local = 0;
  EXPECT_EQ(At(reinterpret_cast<Address>(&local)).kind, AddressKind::kForeign);
  EXPECT_EQ(At(0).kind, AddressKind::kForeign);
  EXPECT_EQ(At(~Address{0}).kind, AddressKind::kForeign);
}

TEST(LookUp, GuardPagesAndBlocksOfNoBytes) {
  TestAllocator<kHardened> test;
  const auto at = [&](Address address) {
    return LookUp(test.allocator->ace(), address);
  };
  const auto empty =
      reinterpret_cast<Address>(test.allocator->Allocate(test.self, 0));
  EXPECT_EQ(at(empty).kind, AddressKind::kEmpty);
  const auto span = reinterpret_cast<Address>(
      test.allocator->Allocate(test.self, kSpanBytes - 100));
  EXPECT_EQ(at(span).block.requested_bytes, kSpanBytes - 100);
  Address behind = span + kSpanBytes - 100;
  while (at(behind).kind == AddressKind::kBlock) behind += 16;
  const AddressFacts guard = at(behind);
  EXPECT_EQ(guard.kind, AddressKind::kGuard);
  ASSERT_TRUE(guard.has_before);
  EXPECT_EQ(guard.before.start, span);
}

// Whatever a unit's record says, of its own zone's classes or of the other's,
// only what the headers bear out is live, and nothing unmapped is read.
TEST(LookUp, DamagedRecords) {
  TestAllocator<kHardened> test;
  Region& region = test.allocator->ace().region();
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{5120}}) {
    const auto block =
        reinterpret_cast<Address>(test.allocator->Allocate(test.self, bytes));
    Zone& zone =
        region.fine().Contains(block) ? region.fine() : region.coarse();
    std::atomic<UnitRecord>& record = zone.unit_record(zone.UnitOf(block));
    const UnitRecord sound = record.load();
    for (unsigned header = 0; header <= 0xff; ++header) {
      const UnitRecord damaged =
          MakeUnitRecord(UnitOwner(sound), static_cast<HeaderByte>(header));
      record.store(damaged);
      const AddressFacts facts = LookUp(test.allocator->ace(), block + 1);
      EXPECT_EQ(facts.kind == AddressKind::kBlock && facts.block.live,
                damaged == sound)
          << header;
    }
    record.store(sound);
  }
}

// With HAKMEM_ON_MISUSE=log every misuse returns, and the heap is whole.
class LoggedMisuseTest : public LookUpTest {
 protected:
  LoggedMisuseTest() { SetOnMisuse(OnMisuse::kLog); }
  ~LoggedMisuseTest() override {
    SetOnMisuse(OnMisuse::kAbort);
    test_.allocator->CheckInvariants();
  }
  std::uint64_t before_ = MisuseCount();
};

TEST_F(LoggedMisuseTest, EveryCallRefusesAFreedBlock) {
  std::uint64_t expected = 0;
  for (const std::size_t bytes :
       {std::size_t{64}, std::size_t{5120}, kSpanBytes, kHugeBytes}) {
    const Address block = Allocate(bytes);
    Free(block);
    Free(block);
    void* const pointer = reinterpret_cast<void*>(block);
    EXPECT_EQ(test_.allocator->UsableSize(test_.self, pointer), 0U);
    EXPECT_EQ(test_.allocator->Reallocate(test_.self, pointer, 10), nullptr);
    test_.allocator->FreeSized(test_.self, pointer, bytes, 16);
    expected += 4;
    EXPECT_EQ(MisuseCount() - before_, expected);
  }
  // None of them is an allocation that failed.
  EXPECT_EQ(test_.allocator->recovery().failures().recorded(), 0U);
  EXPECT_EQ(test_.allocator->upkeep().Snapshot().misuses, MisuseCount());
}

TEST_F(LoggedMisuseTest, AWrongSizeLeaksTheBlock) {
  const Address block = Allocate(64);
  test_.allocator->FreeSized(test_.self, reinterpret_cast<void*>(block), 100,
                             16);
  test_.allocator->FreeSized(test_.self, reinterpret_cast<void*>(block), 64,
                             4096 * 4096);
  EXPECT_EQ(MisuseCount() - before_, 2U);
  ExpectBlock(At(block), block, 64, "live");
  Free(block);
  ExpectBlock(At(block), block, 64, "free");
}

TEST_F(LoggedMisuseTest, ABlockFreedByAnotherThreadGoesToItsOwnerOnce) {
  typename TestAllocator<kRelease>::Heap* other =
      TestedAllocator<kRelease>::NoHeap();
  test_.allocator->Free(other, test_.allocator->Allocate(other, 64));
  const Address block = Allocate(64);
  test_.allocator->Free(other, reinterpret_cast<void*>(block));
  Free(block);
  test_.allocator->Free(other, reinterpret_cast<void*>(block));
  EXPECT_EQ(MisuseCount() - before_, 2U);
  ExpectBlock(At(block), block, 64, "queued");
  test_.allocator->Detach(other);
  // Each block is handed out once.
  test_.allocator->upkeep().Purge(test_.self);
  const Address again = Allocate(64);
  const Address next = Allocate(64);
  EXPECT_NE(again, next);
}

}  // namespace
}  // namespace hakmem
