// Ace: what moved spans cost in mappings, by the kernel's own count.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kUnits = 64;
constexpr std::size_t kBytes = kUnits * kUnitBytes;
constexpr std::size_t kMaxMappings = 400;

// What the process has in the coarse zone.
std::size_t MappingsOf(const Ace& ace) {
  const Zone& zone = ace.region().coarse();
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += zone.Contains(std::stoull(line, nullptr, 16)) ? 1 : 0;
  }
  return count;
}

class AceMovesTest : public testing::Test {
 protected:
  AceMovesTest() {
    memory_.SetMaxMappings(kMaxMappings);
    ace_->Start(Options());
  }
  ~AceMovesTest() override { ace_->CheckInvariants(); }

  std::size_t Mappings() { return MappingsOf(*ace_); }
  Address AddressOf(UnitIndex unit) {
    return ace_->region().coarse().UnitAddress(unit);
  }
  UnitIndex Span(std::uint32_t units) {
    return ace_->GrantSpan(units, kUnitBytes).first;
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
};

// As buffers that realloc makes longer.
TEST_F(AceMovesTest, MappingsStayBelowTheirShareAndComeBack) {
  constexpr int kSpans = 100;
  std::vector<UnitIndex> spans;
  for (int i = 0; i < kSpans; ++i) {
    spans.push_back(Span(kUnits));
    FillContent(AddressOf(spans.back()), kBytes, 1);
  }
  const std::size_t before = Mappings();
  int moved = 0;
  for (UnitIndex& span : spans) {
    const UnitIndex longer = Span(kUnits + 4);
    const VmStatus status = ace_->MoveSpanTo(
        span, ace_->region().coarse().UnitAddress(longer), kBytes);
    if (status.ok()) {
      ++moved;
      ace_->ReleaseSpan(span, kUnits, /*dirty=*/false);
    } else {
      ace_->pages().CopyTouched(AddressOf(span), AddressOf(longer), kBytes);
      ace_->ReleaseSpan(span, kUnits);
    }
    EXPECT_PRED3(HasContent, AddressOf(longer), kBytes, 1);
    span = longer;
    ace_->CheckInvariants();
  }
  EXPECT_GE(moved, 40);
  EXPECT_LT(Mappings(), kMaxMappings / 4);
  // Some get shorter first.
  for (int i = 0; i < kSpans; i += 3) {
    ace_->ReleaseSpan(spans[i] + 10, kUnits + 4 - 10);
    ace_->CheckInvariants();
    ace_->ReleaseSpan(spans[i], 10);
  }
  for (int i = 0; i < kSpans; ++i) {
    if (i % 3 != 0) ace_->ReleaseSpan(spans[i], kUnits + 4);
  }
  ace_->PurgeAll();
  ace_->CheckInvariants();
  EXPECT_LE(Mappings(), before);
  // There is room for as many again.
  const UnitIndex from = Span(kUnits);
  EXPECT_TRUE(
      ace_->MoveSpanTo(from, ace_->region().coarse().UnitAddress(Span(kUnits)),
                       kBytes)
          .ok());
}

// A move takes along each mapping that the span consists of.
TEST_F(AceMovesTest, MappingsOfSpansThatMoveOftenStayBelowTheirShare) {
  std::vector<UnitIndex> spans;
  for (int i = 0; i < 20; ++i) spans.push_back(Span(kUnits));
  std::uint32_t units = kUnits;
  for (int step = 0; step < 8; ++step, units += kUnits) {
    for (UnitIndex& span : spans) {
      WordAt(AddressOf(span)) = 1;
      const UnitIndex longer = Span(units + kUnits);
      const std::size_t bytes = units * kUnitBytes;
      if (!ace_->MoveSpanTo(span, ace_->region().coarse().UnitAddress(longer),
                            bytes)
               .ok()) {
        ace_->pages().CopyTouched(AddressOf(span), AddressOf(longer), bytes);
      }
      ace_->ReleaseSpan(span, units);
      span = longer;
    }
    ace_->CheckInvariants();
    EXPECT_LT(Mappings(), kMaxMappings / 4);
  }
  for (const UnitIndex span : spans) ace_->ReleaseSpan(span, units);
  ace_->PurgeAll();
  EXPECT_LE(Mappings(), 3U);
}

// The mappings that are left when spans with guard pages have got longer, by
// moves or by copies, and all is freed.
std::size_t MappingsAfterGrowth(bool moves, std::size_t& most) {
  constexpr int kSpans = 30;
  constexpr std::size_t kLonger = kBytes + 8 * kUnitBytes;
  FakeVirtualMemory memory;
  memory.SetMaxMappings(kMaxMappings);
  ZoneRanges ranges;
  const auto ace = std::make_unique<WholeAce>(memory, &ranges);
  ace->Start(Options(), kHardened);
  const auto address_of = [&](UnitIndex unit) {
    return ace->region().coarse().UnitAddress(unit);
  };
  std::vector<UnitIndex> spans;
  for (int i = 0; i < kSpans; ++i) {
    const std::uint32_t units = ace->SpanUnits(kBytes);
    const std::uint32_t longer_units = ace->SpanUnits(kLonger);
    const UnitIndex span = ace->GrantSpan(units, kUnitBytes).first;
    const UnitIndex longer = ace->GrantSpan(longer_units, kUnitBytes).first;
    FillContent(address_of(span), kBytes, 1);
    if (moves) {
      EXPECT_TRUE(ace->MoveSpanTo(span,
                                  ace->region().coarse().UnitAddress(longer),
                                  kBytes)
                      .ok());
    } else {
      ace->pages().CopyTouched(address_of(span), address_of(longer), kBytes);
    }
    EXPECT_PRED3(HasContent, address_of(longer), kBytes, 1);
    ace->ReleaseSpan(span, units, /*dirty=*/!moves);
    spans.push_back(longer);
  }
  most = MappingsOf(*ace);
  for (const UnitIndex span : spans) {
    ace->ReleaseSpan(span, ace->SpanUnits(kLonger));
  }
  EXPECT_GT(memory.protected_bytes(), 0U);
  const std::size_t guards = memory.protected_bytes();
  ace->PurgeAll();
  EXPECT_EQ(memory.protected_bytes(), guards);
  ace->CheckInvariants();
  return MappingsOf(*ace);
}

// Guard pages stay, and nothing else.
TEST(AceMoves, MappingsBetweenGuardPagesComeBack) {
  std::size_t most = 0;
  const std::size_t copied = MappingsAfterGrowth(/*moves=*/false, most);
  EXPECT_EQ(most, copied);
  const std::size_t moved = MappingsAfterGrowth(/*moves=*/true, most);
  EXPECT_GT(most, copied);
  EXPECT_EQ(moved, copied);
}

TEST_F(AceMovesTest, CopiesWhatWasTouched) {
  const UnitIndex from = Span(kUnits);
  const UnitIndex to = Span(kUnits);
  FillContent(AddressOf(to), kBytes, 1);
  const std::size_t page_bytes = memory_.PageBytes();
  WordAt(AddressOf(from) + 5 * page_bytes) = 42;
  WordAt(AddressOf(from) + kBytes - 8) = 43;
  ace_->pages().CopyTouched(AddressOf(from), AddressOf(to), kBytes);
  EXPECT_EQ(WordAt(AddressOf(to) + 5 * page_bytes), 42U);
  EXPECT_EQ(WordAt(AddressOf(to) + kBytes - 8), 43U);
  EXPECT_EQ(WordAt(AddressOf(to)), 0U);
  std::vector<unsigned char> resident(kBytes / page_bytes);
  ASSERT_TRUE(
      memory_.FindResident(AddressOf(to), kBytes, resident.data()).ok());
  EXPECT_EQ(std::count(resident.begin(), resident.end(), 1), 3);
}

// No page of it is in memory here. As what a userfaultfd supplies.
TEST_F(AceMovesTest, CopiesWhatTheProgramHasMappedThere) {
  const UnitIndex from = Span(kUnits);
  const UnitIndex to = Span(kUnits);
  const std::size_t page_bytes = memory_.PageBytes();
  const int file = memfd_create("shared", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(page_bytes)), 0);
  const std::uint64_t content = 42;
  ASSERT_EQ(pwrite(file, &content, sizeof(content), 0),
            static_cast<ssize_t>(sizeof(content)));
  auto* const page = reinterpret_cast<void*>(AddressOf(from) + 5 * page_bytes);
  ASSERT_EQ(mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, file, 0),
            page);
  ace_->pages().CopyTouched(AddressOf(from), AddressOf(to), kBytes);
  EXPECT_EQ(WordAt(AddressOf(to) + 5 * page_bytes), content);
  ASSERT_EQ(mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            page);
  close(file);
}

}  // namespace
}  // namespace hakmem
