#include "allocator/reports/address_facts.h"

#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string Said(std::uintptr_t address, const AddressFacts& facts) {
  RawPrinter out;
  PrintAddress(address, facts, out);
  return std::string(out.text());
}

AddressFacts Of(AddressKind kind) {
  AddressFacts facts;
  facts.kind = kind;
  return facts;
}

AddressFacts InBlock() {
  AddressFacts facts = Of(AddressKind::kBlock);
  facts.block = {.start = 0x1000,
                 .bytes = 64,
                 .owner_heap = 2,
                 .live = true,
                 .state = "live"};
  return facts;
}

TEST(AddressFacts, InABlock) {
  EXPECT_EQ(Said(0x1000, InBlock()),
            "the start of block 0x1000 (class 64, owner heap 2, live)");
  EXPECT_EQ(Said(0x1001, InBlock()),
            "1 byte into block 0x1000 (class 64, owner heap 2, live)");
  EXPECT_EQ(Said(0x103f, InBlock()),
            "63 bytes into block 0x1000 (class 64, owner heap 2, live)");
}

TEST(AddressFacts, PastWhatWasAskedFor) {
  AddressFacts facts = InBlock();
  facts.block.requested_bytes = 60;
  EXPECT_EQ(Said(0x103b, facts),
            "59 bytes into block 0x1000 (class 64, owner heap 2, asked for "
            "with 60 bytes, live)");
  EXPECT_EQ(Said(0x103c, facts),
            "0 bytes past the end of block 0x1000 (class 64, owner heap 2, "
            "asked for with 60 bytes, live)");
  facts.block.requested_bytes = 0;
  EXPECT_EQ(Said(0x1000, facts),
            "0 bytes past the end of block 0x1000 (class 64, owner heap 2, "
            "asked for with 0 bytes, live)");
  // Of a freed block the whole is one.
  facts.block.live = false;
  facts.block.state = "free";
  EXPECT_EQ(Said(0x1001, facts),
            "1 byte into block 0x1000 (class 64, owner heap 2, asked for with "
            "0 bytes, free)");
}

TEST(AddressFacts, InNoBlock) {
  EXPECT_EQ(Said(5, Of(AddressKind::kForeign)), "not hakmem's memory");
  EXPECT_EQ(Said(5, Of(AddressKind::kTable)), "in hakmem's own tables");
  EXPECT_EQ(Said(5, Of(AddressKind::kGuarded)), "among the guarded blocks");
  EXPECT_EQ(Said(5, Of(AddressKind::kEmpty)),
            "among the blocks of 0 bytes, which cannot be accessed");
  EXPECT_EQ(Said(5, Of(AddressKind::kGuard)), "a guard page");
  EXPECT_EQ(Said(5, Of(AddressKind::kSlabEnd)), "the unused end of a slab");
  EXPECT_EQ(Said(5, Of(AddressKind::kFreeMemory)), "free memory of hakmem's");
}

TEST(AddressFacts, PastTheEndOfTheBlockBefore) {
  AddressFacts facts = Of(AddressKind::kUnmapped);
  EXPECT_EQ(Said(0x30000, facts),
            "a part of hakmem's region that is not mapped");
  facts.has_before = true;
  facts.before = {.start = 0x10000,
                  .bytes = 0x10000,
                  .route = Route::kSpan,
                  .live = true,
                  .state = "live"};
  EXPECT_EQ(Said(0x20010, facts),
            "a part of hakmem's region that is not mapped, 16 bytes past the "
            "end of block 0x10000 (span of 65536 bytes, live)");
  facts.before.route = Route::kHuge;
  EXPECT_EQ(Said(0x20001, facts),
            "a part of hakmem's region that is not mapped, 1 byte past the end "
            "of block 0x10000 (huge block of 65536 bytes, live)");
}

}  // namespace
}  // namespace hakmem
