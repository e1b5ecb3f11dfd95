#include "allocator/base/zero_bytes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Every length around the steps, in the middle of bytes that must stay.
TEST(ZeroBytesTest, ClearsExactlyWhatItIsTold) {
  for (std::size_t bytes = 0; bytes < 1040; ++bytes) {
    std::vector<unsigned char> memory(bytes + 64, 0xa5);
    ZeroBytes(memory.data() + 32, bytes);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i], i - 32 < bytes ? 0 : 0xa5) << bytes << " " << i;
    }
  }
}

// However little there is to clear.
TEST(ZeroBytesTest, FindsEachByteOfLongBlocks) {
  for (const std::size_t bytes : {256, 257, 511, 512, 700, 4096}) {
    std::vector<char> memory(bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      memory[at] = 1;
      ZeroBytes(memory.data(), bytes);
      EXPECT_EQ(FirstNonZero(memory.data(), bytes), bytes) << at;
    }
  }
}

TEST(ZeroBytesTest, ShortFormClearsExactlyWhatItIsTold) {
  for (std::size_t bytes = kMinShortBytes; bytes < 1040; ++bytes) {
    std::vector<unsigned char> memory(bytes + 64, 0xa5);
    ZeroShort(memory.data() + 32, PiecedLength(bytes));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i], i - 32 < bytes ? 0 : 0xa5) << bytes << " " << i;
    }
  }
}

TEST(ZeroBytesTest, LooksAtAllOfABeginning) {
  for (const std::size_t bytes : {256, 257, 511, 512, 1000, 4096}) {
    std::vector<char> memory(bytes + 2);
    memory.front() = memory.back() = 1;
    char* const start = memory.data() + 1;
    EXPECT_TRUE(IsZeroWhole(start, bytes));
    for (std::size_t at = 0; at < bytes; ++at) {
      start[at] = 1;
      EXPECT_FALSE(IsZeroWhole(start, bytes)) << bytes << " " << at;
      start[at] = 0;
    }
  }
}

TEST(ZeroBytesTest, APartIsABeginning) {
  for (const std::size_t bytes : {32, 128, 144, 240, 256}) {
    EXPECT_EQ(PiecedLength(bytes, 16).bytes, bytes);
    EXPECT_FALSE(PiecedLength(bytes, 16).is_part);
  }
  EXPECT_EQ(PiecedLength(272, 16).bytes, 256U);
  EXPECT_TRUE(PiecedLength(272, 16).is_part);
  EXPECT_EQ(PiecedLength(65536, 1000).bytes, 1000U);
  EXPECT_TRUE(PiecedLength(65536, 1000).is_part);
  EXPECT_FALSE(PiecedLength(1008, 1008).is_part);
  EXPECT_FALSE(PiecedLength(65536).is_part);
}

// Up to 288 bytes every one is looked at; and no byte outside.
TEST(ZeroBytesTest, FindsEveryByteOfShortBlocks) {
  for (std::size_t bytes = kMinShortBytes; bytes <= 288; bytes += 16) {
    std::vector<char> memory(bytes + 32);
    char* const start = memory.data() + 16;
    start[-1] = start[bytes] = 1;
    const PiecedLength length(bytes);
    EXPECT_TRUE(IsZeroShort(start, length, [] { return 0U; }));
    EXPECT_EQ(FirstNonZero(start, bytes), bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      start[at] = 1;
      EXPECT_FALSE(IsZeroShort(start, length, [] { return 0U; }))
          << bytes << " " << at;
      EXPECT_EQ(FirstNonZero(start, bytes), at);
      start[at] = 0;
    }
  }
}

// The ends each time, and what is between sooner or later.
TEST(ZeroBytesTest, TurnsReachEveryByteOfLongerBlocks) {
  constexpr std::size_t kPlaceBytes = 64;
  struct alignas(kPlaceBytes) Line {
    char bytes[kPlaceBytes];
  };
  constexpr auto kLook = IsZeroInPlaces<kPlaceBytes, kPlaceBytes>;
  for (const std::size_t bytes : {304, 320, 1024, 1040, 5120, 65536}) {
    std::vector<Line> memory(bytes / kPlaceBytes + 3);
    char* const start = memory[1].bytes;
    start[-1] = start[bytes] = 1;
    std::vector<bool> found(bytes);
    // As many as reach all if each place is looked at twice.
    const auto turns = static_cast<std::uint32_t>(bytes / kPlaceBytes / 4 + 8);
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      EXPECT_TRUE(kLook(start, bytes, turn));
      for (std::size_t at = 0; at < bytes; at += 7) {
        start[at] = 1;
        const bool sees = !kLook(start, bytes, turn);
        EXPECT_TRUE(sees || (at >= kPlaceBytes && at < bytes - kPlaceBytes));
        if (sees) found[at] = true;
        start[at] = 0;
      }
    }
    for (std::size_t at = 0; at < bytes; at += 7) {
      EXPECT_TRUE(found[at]) << bytes << " " << at;
    }
  }
}

}  // namespace
}  // namespace hakmem
