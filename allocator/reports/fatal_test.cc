#include "allocator/reports/fatal.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_sources.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const void* At(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

constexpr std::uintptr_t kPointer = 0x10000000abc0;

BlockReport Tiny() {
  return {.pointer = At(kPointer),
          .use = PointerUse::kFree,
          .variant = "release",
          .route = Route::kTiny,
          .block_bytes = 64,
          .owner_heap = 3,
          .caller_heap = 1};
}

BlockReport Span() {
  return {.pointer = At(kPointer),
          .use = PointerUse::kFree,
          .variant = "hardened",
          .route = Route::kSpan,
          .block_bytes = 196608,
          .owner_heap = 0,
          .caller_heap = 0};
}

BlockReport Huge() {
  BlockReport block = Span();
  block.route = Route::kHuge;
  block.block_bytes = 268500992;
  return block;
}

BlockReport With(BlockReport block, PointerUse use) {
  block.use = use;
  return block;
}

// The whole report, as a pattern in which ids are any numbers.
std::string Exactly(const std::string& sentence,
                    const std::string& call = "free",
                    const std::string& heap = "heap 1",
                    const std::string& variant = "release") {
  std::string pattern = "^hakmem: fatal: ";
  for (const char c : sentence) {
    if (c == '(' || c == ')') pattern += '\\';
    pattern += c;
  }
  return pattern + "\n  in " + call + ", thread [0-9]+, " + heap +
         "\n  stack of this call:\n(    #[0-9]+ 0x[0-9a-f]+ [^\n]+\n)+"
         "  hint: [^\n]+\\.\n  hakmem 0\\.1\\.0 " +
         variant + " \\([a-z]+\\)\n$";
}

std::string ExactlyOfSpan(const std::string& sentence,
                          const std::string& call = "free") {
  return Exactly(sentence, call, "no heap", "hardened");
}

const auto kAborts = testing::KilledBySignal(SIGABRT);

TEST(FatalDeathTest, FreedBlock) {
  EXPECT_EXIT(FatalFreedBlock(Tiny(), "free"), kAborts,
              Exactly("double free of 0x10000000abc0 "
                      "(class 64, owner heap 3, state free)"));
  EXPECT_EXIT(FatalFreedBlock(Tiny(), "queued"), kAborts,
              Exactly("double free of 0x10000000abc0 "
                      "(class 64, owner heap 3, state queued)"));
  EXPECT_EXIT(FatalFreedBlock(Span(), "released"), kAborts,
              ExactlyOfSpan("double free of 0x10000000abc0 "
                            "(span of 196608 bytes, state released)"));
  EXPECT_EXIT(FatalFreedBlock(Huge(), "released"), kAborts,
              ExactlyOfSpan("double free of 0x10000000abc0 "
                            "(huge block of 268500992 bytes, state released)"));
}

TEST(FatalDeathTest, FreedBlockOfAReleasedSlabHasNoOwner) {
  BlockReport block = Tiny();
  block.route = Route::kPool;
  block.block_bytes = 2048;
  block.owner_heap = 0;
  EXPECT_EXIT(FatalFreedBlock(block, "released"), kAborts,
              Exactly("double free of 0x10000000abc0 "
                      "(class 2048, state released)"));
}

TEST(FatalDeathTest, BlocksOfNoBytesHaveNoClass) {
  BlockReport block = Tiny();
  block.block_bytes = 0;
  block.owner_heap = 0;
  EXPECT_EXIT(FatalFreedBlock(block, "free"), kAborts,
              Exactly("double free of 0x10000000abc0 "
                      "(block of size 0, state free)"));
  EXPECT_EXIT(FatalWrongSize(block, 8), kAborts,
              Exactly("wrong-size free of 0x10000000abc0 "
                      "(given 8 bytes, block of size 0)"));
}

TEST(FatalDeathTest, FreedBlockInOtherCalls) {
  EXPECT_EXIT(FatalFreedBlock(With(Tiny(), PointerUse::kRealloc), "free"),
              kAborts,
              Exactly("realloc of freed block 0x10000000abc0 "
                      "(class 64, owner heap 3, state free)",
                      "realloc"));
  EXPECT_EXIT(FatalFreedBlock(With(Tiny(), PointerUse::kUsableSize), "free"),
              kAborts,
              Exactly("malloc_usable_size of freed block 0x10000000abc0 "
                      "(class 64, owner heap 3, state free)",
                      "malloc_usable_size"));
}

TEST(FatalDeathTest, InteriorPointer) {
  EXPECT_EXIT(FatalInteriorPointer(Tiny(), At(kPointer - 16), true), kAborts,
              Exactly("invalid free of 0x10000000abc0 (interior pointer: 16 "
                      "bytes into the live block 0x10000000abb0, class 64)"));
  EXPECT_EXIT(FatalInteriorPointer(With(Tiny(), PointerUse::kRealloc),
                                   At(kPointer - 16), false),
              kAborts,
              Exactly("invalid realloc of 0x10000000abc0 (interior pointer: 16 "
                      "bytes into the free block 0x10000000abb0, class 64)",
                      "realloc"));
  EXPECT_EXIT(
      FatalInteriorPointer(With(Span(), PointerUse::kUsableSize),
                           At(kPointer - 0xbc0), true),
      kAborts,
      ExactlyOfSpan("invalid malloc_usable_size of 0x10000000abc0 (interior "
                    "pointer: 3008 bytes into the live block 0x10000000a000, "
                    "span of 196608 bytes)",
                    "malloc_usable_size"));
}

TEST(FatalDeathTest, NotABlock) {
  EXPECT_EXIT(FatalNotABlock(Tiny()), kAborts,
              Exactly("invalid free of 0x10000000abc0 "
                      "(inside hakmem's region, but not a block)"));
  EXPECT_EXIT(FatalNotABlock(With(Tiny(), PointerUse::kRealloc)), kAborts,
              Exactly("invalid realloc of 0x10000000abc0 "
                      "(inside hakmem's region, but not a block)",
                      "realloc"));
}

TEST(FatalDeathTest, ForeignPointer) {
  EXPECT_EXIT(FatalForeignPointer(Tiny()), kAborts,
              Exactly("invalid free of 0x10000000abc0 (not hakmem's memory)"));
  EXPECT_EXIT(FatalForeignPointer(With(Tiny(), PointerUse::kUsableSize)),
              kAborts,
              Exactly("invalid malloc_usable_size of 0x10000000abc0 "
                      "(not hakmem's memory)",
                      "malloc_usable_size"));
}

TEST(FatalDeathTest, WrongSize) {
  EXPECT_EXIT(FatalWrongSize(Tiny(), 100), kAborts,
              Exactly("wrong-size free of 0x10000000abc0 "
                      "(given 100 bytes, block of class 64, owner heap 3)"));
  EXPECT_EXIT(FatalWrongSize(Span(), 100), kAborts,
              ExactlyOfSpan("wrong-size free of 0x10000000abc0 "
                            "(given 100 bytes, span of 196608 bytes)"));
}

TEST(FatalDeathTest, WrongAlignment) {
  EXPECT_EXIT(
      FatalWrongAlignment(Tiny(), 4096), kAborts,
      Exactly("wrong-alignment free of 0x10000000abc0 "
              "(given alignment 4096, block of class 64, owner heap 3)"));
}

TEST(FatalDeathTest, DamagedHeader) {
  EXPECT_EXIT(FatalDamagedHeader(Tiny(), 0xa6, 0x47), kAborts,
              Exactly("damaged header of 0x10000000abc0 "
                      "(found 0xa6, expected 0x47; class 64, owner heap 3)"));
}

TEST(Fatal, RoutesHaveNames) {
  EXPECT_STREQ(RouteName(Route::kTiny), "tiny");
  EXPECT_STREQ(RouteName(Route::kPool), "pool");
  EXPECT_STREQ(RouteName(Route::kSpan), "span");
  EXPECT_STREQ(RouteName(Route::kHuge), "huge");
}

TEST(FatalDeathTest, Reentry) {
  EXPECT_EXIT(FatalReentry("release"), kAborts,
              "^hakmem: fatal: malloc or free called in the middle of malloc "
              "or free\n  in thread [0-9]+\n  stack of this call:\n");
}

// What a report asks for may come back to one, for ever.
TEST(FatalDeathTest, AReportWithinAReportIsOneLine) {
  const auto report = [] {
    SetSurroundingsSource([](std::uintptr_t /*address*/, Surroundings& around) {
      around = {};
      FatalNotABlock(Tiny());
    });
    FatalFreedBlock(Tiny(), "free");
  };
  const std::string line =
      "^hakmem: fatal: in the middle of a report: invalid free of "
      "0x10000000abc0 \\(inside hakmem's region, but not a block\\) "
      "\\([a-z]+\\)\n$";
  EXPECT_EXIT(report(), kAborts, line);
  EXPECT_EXIT(SetOnMisuse(OnMisuse::kLog); report(), kAborts, line);
}

TEST(FatalDeathTest, WhoGoesOnMayReportAgain) {
  EXPECT_EXIT(
      {
        SetOnMisuse(OnMisuse::kLog);
        FatalFreedBlock(Tiny(), "free");
        FatalNotABlock(Tiny());
        _exit(0);
      },
      testing::ExitedWithCode(0), "misuse: double free(.|\n)*misuse: invalid");
}

}  // namespace
}  // namespace hakmem
