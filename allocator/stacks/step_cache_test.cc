#include "allocator/stacks/step_cache.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kPageBytes = 4096;

// In memory of which the first page alone can be touched.
class StepCacheTest : public testing::Test {
 protected:
  StepCacheTest() { EXPECT_NE(memory_, MAP_FAILED); }
  ~StepCacheTest() override { munmap(memory_, sizeof(StepCache)); }

  void Clear() { std::memset(memory_, 0, kPageBytes); }
  void OpenRest() {
    EXPECT_EQ(mprotect(memory_, sizeof(StepCache), PROT_READ | PROT_WRITE), 0);
  }

  void* const memory_ = mmap(nullptr, sizeof(StepCache), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  StepCache& cache_ = *static_cast<StepCache*>(memory_);
};

TEST_F(StepCacheTest, TheFirstOfEachPlaceAreInOnePage) {
  ASSERT_EQ(mprotect(memory_, kPageBytes, PROT_READ | PROT_WRITE), 0);
  for (std::uintptr_t address = 0x400000; address < 0x404000; ++address) {
    Clear();
    EXPECT_EQ(cache_.Find(address), 0U);
    cache_.Keep(address, address * 2);
    EXPECT_EQ(cache_.Find(address), address * 2);
  }
}

TEST_F(StepCacheTest, OthersAreElsewhere) {
  OpenRest();
  std::size_t found = 0;
  constexpr std::uintptr_t kCount = 512;  // twice the page's places
  for (std::uintptr_t i = 1; i <= kCount; ++i) cache_.Keep(i << 20, i);
  for (std::uintptr_t i = 1; i <= kCount; ++i) {
    const std::uint64_t word = cache_.Find(i << 20);
    EXPECT_TRUE(word == 0 || word == i);
    found += word == 0 ? 0 : 1;
  }
  EXPECT_GT(found, 400U);
}

}  // namespace
}  // namespace hakmem
