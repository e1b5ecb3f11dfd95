#include "allocator/slab/size_class.h"

#include <cstddef>
#include <cstdint>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr auto kClasses = static_cast<SizeClass>(kClassCount);

SizeClass FirstThatHolds(std::size_t size_bytes, std::size_t alignment_bytes) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    if (ClassBytes(c) >= size_bytes && ClassBytes(c) % alignment_bytes == 0) {
      return c;
    }
  }
  return kClasses;
}

TEST(SizeClassTest, SizesAreThoseOfTheDesign) {
  SizeClass c = 0;
  for (std::size_t bytes = 16; bytes <= 128; bytes += 16) {
    EXPECT_EQ(ClassBytes(c++), bytes);
  }
  for (std::size_t doubling = 128; doubling < 64 * kKiB; doubling *= 2) {
    for (std::size_t step = 1; step <= 4; ++step) {
      EXPECT_EQ(ClassBytes(c++), doubling + step * doubling / 4);
    }
  }
  EXPECT_EQ(c, kClasses);
}

TEST(SizeClassTest, EverySizeHasTheSmallestClassThatHoldsIt) {
  SizeClass expected = 0;
  for (std::size_t size = 0; size <= kMaxPoolBytes; ++size) {
    if (size > ClassBytes(expected)) ++expected;
    ASSERT_EQ(ClassOf(size), expected) << size;
    ASSERT_EQ(IsTiny(ClassOf(size)), size <= kMaxTinyBytes) << size;
  }
}

TEST(SizeClassTest, LittleIsWasted) {
  for (std::size_t size = 129; size <= kMaxPoolBytes; ++size) {
    ASSERT_LE((ClassBytes(ClassOf(size)) - size) * 5, ClassBytes(ClassOf(size)))
        << size;
  }
}

TEST(SizeClassTest, BlocksFitTheirZonesGranules) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const std::size_t granule_bytes =
        std::size_t{1} << (IsTiny(c) ? kFineGranuleShift : kCoarseGranuleShift);
    EXPECT_EQ(ClassBytes(c) % granule_bytes, 0U) << unsigned{c};
  }
}

TEST(SizeClassTest, SlabsAreFullOfBlocks) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const ClassLayout& layout = kClassLayouts[c];
    const std::size_t slab_bytes = layout.slab_units * kUnitBytes;
    EXPECT_TRUE(layout.slab_units == 1 || layout.slab_units == 4);
    EXPECT_EQ(layout.capacity, slab_bytes / ClassBytes(c));
    EXPECT_GE(layout.capacity, 4U);
    // Header, bitmap and summary have room for as many.
    EXPECT_LE(layout.capacity, IsTiny(c) ? 64U * 64 : 64U);
    EXPECT_LT(slab_bytes - layout.capacity * ClassBytes(c), ClassBytes(c));
  }
}

// At every granule of every slab, and at both ends of the granule.
TEST(SizeClassTest, BlockIndexIsExact) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const auto bytes = static_cast<std::uint32_t>(ClassBytes(c));
    const auto slab_bytes =
        static_cast<std::uint32_t>(kClassLayouts[c].slab_units * kUnitBytes);
    for (std::uint32_t offset = 0; offset < slab_bytes; offset += 16) {
      ASSERT_EQ(BlockIndexAt(c, offset), offset / bytes)
          << unsigned{c} << " " << offset;
      ASSERT_EQ(BlockIndexAt(c, offset + 15), offset / bytes)
          << unsigned{c} << " " << offset;
    }
  }
}

TEST(SizeClassTest, AlignedClassIsTheSmallestThatFits) {
  for (std::size_t alignment = 1; alignment <= kMaxPoolBytes; alignment *= 2) {
    for (std::size_t size = 0; size <= kMaxPoolBytes; ++size) {
      ASSERT_EQ(AlignedClassOf(size, alignment),
                FirstThatHolds(size, alignment))
          << size << " " << alignment;
      // Between class sizes nothing changes.
      if (size > kMaxTinyBytes && size % 256 == 2) size += 253;
    }
  }
}

TEST(SizeClassTest, CoarseClassServesWhatATinyOneDoes) {
  for (SizeClass tiny = 0; tiny < kTinyClassCount; ++tiny) {
    const SizeClass coarse = CoarseClassFor(tiny);
    EXPECT_FALSE(IsTiny(coarse));
    for (std::size_t alignment = 16; alignment <= kMaxTinyBytes;
         alignment *= 2) {
      EXPECT_TRUE(ClassBytes(tiny) % alignment != 0 ||
                  ClassBytes(coarse) % alignment == 0);
    }
  }
  EXPECT_EQ(ClassBytes(CoarseClassFor(0)), 1280U);
  EXPECT_EQ(ClassBytes(CoarseClassFor(kTinyClassCount - 1)), 2048U);
}

// Each block of a slab is aligned to what AlignedClassOf promises, because the
// slab's base is aligned to the slab's length.
TEST(SizeClassTest, SlabsAreAlignedAsStrictlyAsTheirBlocks) {
  for (SizeClass c = 0; c < kClasses; ++c) {
    const std::size_t alignment = ClassBytes(c) & (~ClassBytes(c) + 1);
    EXPECT_EQ((kClassLayouts[c].slab_units * kUnitBytes) % alignment, 0U);
  }
}

}  // namespace
}  // namespace hakmem
