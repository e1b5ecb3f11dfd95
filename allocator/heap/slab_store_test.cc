#include "allocator/heap/slab_store.h"

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/fault_hook.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr HeapId kHeap = 5;
const SizeClass kTiny = ClassOf(64);
const SizeClass kPool = ClassOf(8 * kKiB);

class SlabStoreTest : public testing::Test {
 protected:
  SlabStoreTest() { ace_.Start(HeapOptions()); }
  ~SlabStoreTest() override {
    store_.CheckInvariants();
    ace_.CheckInvariants();
  }

  static constexpr std::uint32_t kSome = 63;

  // The lowest first.
  std::vector<void*> Take(SizeClass size_class, std::uint32_t count) {
    Refusal refusal;
    std::vector<void*> blocks(count);
    blocks.resize(store_.Take(size_class, blocks.data(), count, refusal));
    std::reverse(blocks.begin(), blocks.end());
    EXPECT_EQ(blocks.empty(), refusal.reason != FailureReason::kNone);
    store_.CheckInvariants();
    return blocks;
  }
  // All blocks of so many slabs.
  std::vector<void*> TakeSlabs(SizeClass size_class, std::uint32_t slabs) {
    std::vector<void*> all;
    while (all.size() < slabs * kClassLayouts[size_class].capacity) {
      const std::vector<void*> some = Take(size_class, kSome);
      all.insert(all.end(), some.begin(), some.end());
    }
    EXPECT_EQ(store_.slabs_granted(), slabs);
    return all;
  }
  void Put(SizeClass size_class, const std::vector<void*>& blocks) {
    EXPECT_EQ(store_.Put(size_class, blocks.data(),
                         static_cast<std::uint32_t>(blocks.size())),
              blocks.size());
    store_.CheckInvariants();
  }
  const Zone& ZoneOf(SizeClass size_class) {
    return IsTiny(size_class) ? ace_.region().fine() : ace_.region().coarse();
  }
  UnitRecord RecordOf(SizeClass size_class, const void* block) {
    const Zone& zone = ZoneOf(size_class);
    return zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)));
  }
  Statistics Takes() {
    Statistics statistics;
    StatisticSum sum(statistics);
    store_.VisitCounters(sum);
    return statistics;
  }
  std::uint64_t GrantedUnits() {
    Statistics statistics;
    ace_.AddStatistics(statistics);
    return statistics.granted_bytes / kUnitBytes;
  }

  FakeVirtualMemory memory_;
  WholeAce ace_{memory_};
  SlabStore store_{&ace_, kHeap};
};

// A page that is closed until it is touched, and can only be read from then on
// until it is written. An instruction that writes first comes here twice.
Address g_closed = 0;
std::size_t g_closed_bytes = 0;
std::uintptr_t g_touched_by = 0;
bool g_is_written_first = false;

FaultVerdict OpenClosed(const Fault& fault) {
  if (!fault.has_address || fault.address - g_closed >= g_closed_bytes) {
    return FaultVerdict::kUnknown;
  }
  auto* const page = reinterpret_cast<void*>(g_closed);
  if (g_touched_by == 0) {
    g_touched_by = fault.place.instruction;
    mprotect(page, g_closed_bytes, PROT_READ);
  } else {
    g_is_written_first = fault.place.instruction == g_touched_by;
    mprotect(page, std::exchange(g_closed_bytes, 0), PROT_READ | PROT_WRITE);
  }
  return FaultVerdict::kMended;
}

// A page of descriptors that nobody has touched takes one fault of the kernel,
// and not a second one for the first write after a read.
TEST_F(SlabStoreTest, ADescriptorIsWrittenBeforeItIsRead) {
  AddFaultListener(&OpenClosed, SignalBit(SIGSEGV),
                   OtherHandlers::kStandBefore);
  Take(kTiny, 1);
  const std::size_t page_bytes = memory_.PageBytes();
  const Zone& zone = ace_.region().fine();
  g_closed = RoundUp<Address>(reinterpret_cast<Address>(zone.UnitDescriptor(1)),
                              page_bytes);
  g_closed_bytes = page_bytes;
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(g_closed), page_bytes, PROT_NONE),
            0);
  while (g_closed_bytes != 0) Take(kTiny, kSome);
  EXPECT_TRUE(g_is_written_first);
}

TEST_F(SlabStoreTest, GivesFreeBlocksOfItsOwnUnits) {
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    const std::size_t count =
        std::min<std::size_t>(10, kClassLayouts[i].capacity);
    const std::vector<void*> blocks = Take(size_class, 10);
    EXPECT_EQ(blocks.size(), count);
    for (const void* block : blocks) {
      const auto address = reinterpret_cast<Address>(block);
      EXPECT_EQ(ZoneOf(size_class).header(address),
                MakeHeader(BlockState::kFree, i + 1));
      EXPECT_EQ(RecordOf(size_class, block),
                MakeUnitRecord(kHeap, MakeHeader(BlockState::kLive, i + 1)));
    }
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), count);
  }
}

TEST_F(SlabStoreTest, EveryUnitOfASlabBearsItsRecord) {
  const SizeClass size_class = ClassOf(64 * kKiB);
  for (const void* block : TakeSlabs(size_class, 1)) {
    EXPECT_EQ(UnitOwner(RecordOf(size_class, block)), kHeap);
  }
}

TEST_F(SlabStoreTest, TakesFromTheFullestSlab) {
  for (const SizeClass size_class : {kTiny, kPool}) {
    const std::uint32_t before =
        static_cast<std::uint32_t>(store_.slabs_granted());
    const std::uint32_t capacity = kClassLayouts[size_class].capacity;
    std::vector<void*> all;
    while (all.size() < 3 * capacity) {
      const std::vector<void*> some = Take(size_class, kSome);
      all.insert(all.end(), some.begin(), some.end());
    }
    EXPECT_EQ(store_.slabs_granted(), before + 3);
    // The second slab is the fullest, then the third, then the first.
    Put(size_class, {all.begin(), all.begin() + capacity - 1});
    Put(size_class, {all.begin() + 2 * capacity,
                     all.begin() + 2 * capacity + capacity / 2});
    Put(size_class, {all[capacity + 1]});
    EXPECT_EQ(Take(size_class, 1)[0], all[capacity + 1]);
    EXPECT_EQ(Take(size_class, 1)[0], all[2 * capacity]);
    Put(size_class, {all.begin() + 2 * capacity + capacity / 2, all.end()});
    EXPECT_EQ(store_.slabs_granted(), before + 3);
  }
}

TEST_F(SlabStoreTest, EmptySlabsGoBack) {
  std::vector<void*> all = TakeSlabs(kPool, 4);
  const std::uint32_t capacity = kClassLayouts[kPool].capacity;
  EXPECT_EQ(GrantedUnits(), 4 * kClassLayouts[kPool].slab_units);
  Put(kPool, {all.begin(), all.begin() + 2 * capacity});
  EXPECT_EQ(GrantedUnits(), 2 * kClassLayouts[kPool].slab_units);
  for (std::uint32_t i = 0; i < 2 * capacity; ++i) {
    EXPECT_EQ(RecordOf(kPool, all[i]), 0U);
  }
  Put(kPool, {all.begin() + 2 * capacity, all.end()});
  EXPECT_EQ(GrantedUnits(), 0U);
}

TEST_F(SlabStoreTest, KeepsOneEmptyTinySlabUntilToldOtherwise) {
  const std::vector<void*> all = TakeSlabs(kTiny, 3);
  Put(kTiny, all);
  EXPECT_EQ(GrantedUnits(), 1U);
  store_.ReleaseEmpty();
  EXPECT_EQ(GrantedUnits(), 0U);
  EXPECT_EQ(RecordOf(kTiny, all.back()), 0U);
}

// Headers of the last class must not be taken for blocks of the next.
TEST_F(SlabStoreTest, AReusedSlabHasNoOldHeaders) {
  const std::vector<void*> old = TakeSlabs(ClassOf(16), 1);
  Put(ClassOf(16), old);
  store_.ReleaseEmpty();
  const std::vector<void*> now = Take(ClassOf(1024), 1);
  ASSERT_EQ(now[0], old[0]);
  for (std::size_t i = 1; i < old.size(); ++i) {
    EXPECT_EQ(ZoneOf(kTiny).header(reinterpret_cast<Address>(old[i])),
              kNoBlock);
  }
}

TEST_F(SlabStoreTest, PassesOnWhyNothingWasGranted) {
  memory_.RefuseCall(1, EPERM, Refuse::kFromThenOn);
  Refusal refusal;
  void* block = nullptr;
  EXPECT_EQ(store_.Take(kTiny, &block, 1, refusal), 0U);
  EXPECT_EQ(refusal.reason, FailureReason::kMapFail);
  EXPECT_EQ(refusal.error_number, EPERM);
  store_.CheckInvariants();
  memory_.RefuseNothing();
  EXPECT_EQ(Take(kTiny, 1).size(), 1U);
}

TEST_F(SlabStoreTest, ABlockThatIsFreeCannotBePutBack) {
  const std::vector<void*> blocks = Take(kTiny, 2);
  Put(kTiny, {blocks[0]});
  void* const both[] = {blocks[1], blocks[0]};
  EXPECT_EQ(store_.Put(kTiny, both, 2), 1U);
  store_.CheckInvariants();
}

TEST_F(SlabStoreTest, ABlockOfASlabThatWentBackCannotBePutBack) {
  const std::vector<void*> old = TakeSlabs(ClassOf(16), 1);
  Put(ClassOf(16), old);
  store_.ReleaseEmpty();
  EXPECT_EQ(store_.Put(ClassOf(16), old.data(), 1), 0U);
  const std::vector<void*> now = Take(ClassOf(1024), 1);
  ASSERT_EQ(now[0], old[0]);
  EXPECT_EQ(store_.Put(ClassOf(16), old.data(), 1), 0U);
}

// Whoever frees at random into thousands of slabs comes by every few blocks.
TEST_F(SlabStoreTest, ReleaseEmptyLooksAtNoSlabThatItKeeps) {
  for (const SizeClass size_class : {kTiny, kPool}) {
    const Zone& zone = ZoneOf(size_class);
    const std::uint32_t capacity = kClassLayouts[size_class].capacity;
    // Three slabs of which one block each is in use.
    const std::uint64_t slabs_before = store_.slabs_granted();
    std::vector<void*> all;
    while (store_.slabs_granted() < slabs_before + 3 ||
           all.size() < std::size_t{3} * capacity) {
      const std::vector<void*> some = Take(size_class, kSome);
      all.insert(all.end(), some.begin(), some.end());
    }
    std::vector<void*> used;
    std::vector<Slab*> sparse;
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto first = all.begin() + std::ptrdiff_t{i} * capacity;
      Put(size_class, {first + 1, first + capacity});
      used.push_back(*first);
      const UnitIndex unit = SlabUnitOf(
          size_class, zone.UnitOf(reinterpret_cast<Address>(*first)));
      sparse.push_back(&DescriptorOf(zone, unit).slab);
    }
    // Whoever follows these links ends there.
    UnitIndex links[3];
    for (std::uint32_t i = 0; i < 3; ++i) {
      links[i] = std::exchange(sparse[i]->next, UnitIndex{0xffff'fff0});
    }
    store_.ReleaseEmpty();
    for (std::uint32_t i = 0; i < 3; ++i) sparse[i]->next = links[i];
    Put(size_class, used);
    store_.ReleaseEmpty();
  }
  EXPECT_EQ(GrantedUnits(), 0U);
}

TEST_F(SlabStoreTest, RandomUseKeepsTheInvariants) {
  const SizeClass classes[] = {
      0, kTiny, ClassOf(1024), ClassOf(2048), kPool, ClassOf(64 * kKiB)};
  std::mt19937 random(3);
  std::vector<void*> out[kClassCount];
  std::set<void*> all;
  for (int step = 0; step < 3000; ++step) {
    const SizeClass size_class = classes[random() % std::size(classes)];
    std::vector<void*>& mine = out[size_class];
    if ((step / 500) % 2 == 0 ? random() % 3 != 0 : random() % 3 == 0) {
      for (void* block : Take(size_class, 1 + random() % kSome)) {
        ASSERT_TRUE(all.insert(block).second);
        mine.push_back(block);
      }
    } else {
      std::shuffle(mine.begin(), mine.end(), random);
      const std::size_t count =
          std::min<std::size_t>(mine.size(), random() % 100);
      const std::vector<void*> back(mine.end() - static_cast<int>(count),
                                    mine.end());
      mine.resize(mine.size() - count);
      for (void* block : back) all.erase(block);
      Put(size_class, back);
    }
  }
  for (const SizeClass size_class : classes) Put(size_class, out[size_class]);
  store_.ReleaseEmpty();
  EXPECT_EQ(GrantedUnits(), 0U);
}

TEST_F(SlabStoreTest, CountsWhatServedTakes) {
  const std::vector<void*> blocks = Take(kTiny, kSome);
  EXPECT_EQ(Takes().refills_from_partial_slabs, 0U);
  EXPECT_EQ(Takes().refills_from_empty_slabs, 0U);
  const std::vector<void*> more = Take(kTiny, kSome);
  EXPECT_EQ(Takes().refills_from_partial_slabs, 1U);
  Put(kTiny, more);
  Put(kTiny, blocks);
  Put(kTiny, Take(kTiny, 1));  // from the slab that stayed
  EXPECT_EQ(Takes().refills_from_partial_slabs, 1U);
  EXPECT_EQ(Takes().refills_from_empty_slabs, 1U);
  EXPECT_EQ(store_.slabs_granted(), 1U);
}

// Or it would take what is in use for idle.
TEST_F(SlabStoreTest, TakesAndPutsAreSeenByTheLookForIdleSlabs) {
  const std::vector<void*> blocks = Take(kPool, 3);
  const Zone& zone = ace_.region().coarse();
  Slab& slab =
      DescriptorOf(zone, zone.UnitOf(reinterpret_cast<Address>(blocks[0])))
          .slab;
  slab.looks = Slab::kIdleLooks;
  Put(kPool, {blocks[2]});
  EXPECT_EQ(slab.looks, 0U);
  slab.looks = Slab::kIdleLooks;
  EXPECT_EQ(Take(kPool, 1).size(), 1U);
  EXPECT_EQ(slab.looks, 0U);
}

}  // namespace
}  // namespace hakmem
