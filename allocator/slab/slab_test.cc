#include "allocator/slab/slab.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// A slab in memory like its descriptor's, which held another before.
class SlabInDescriptor {
 public:
  explicit SlabInDescriptor(SizeClass size_class) {
    std::memset(memory_, 0xa5, sizeof(memory_));
    slab_ = new (memory_) Slab;
    slab_->Start(size_class, 48);
  }
  Slab& operator*() { return *slab_; }
  Slab* operator->() { return slab_; }

 private:
  alignas(64) std::byte memory_[kFineDescriptorBytes];
  Slab* slab_;
};

// Blocks by how they were last seen: a model of the slab.
struct Model {
  explicit Model(std::uint32_t blocks) : capacity(blocks) {}

  // What Take must return: the lowest free ones, then ones never handed out.
  std::vector<std::uint32_t> Take(std::uint32_t count) {
    std::vector<std::uint32_t> taken;
    while (taken.size() < count && !free.empty()) {
      taken.push_back(*free.begin());
      free.erase(free.begin());
    }
    while (taken.size() < count && bump < capacity) taken.push_back(bump++);
    out.insert(taken.begin(), taken.end());
    return taken;
  }
  bool Put(std::uint32_t index) {
    if (out.erase(index) == 0) return false;
    free.insert(index);
    return true;
  }

  std::uint32_t capacity;
  std::uint32_t bump = 0;
  std::set<std::uint32_t> free;
  std::set<std::uint32_t> out;
};

void ExpectAgree(const Slab& slab, const Model& model) {
  slab.CheckInvariants();
  ASSERT_EQ(slab.capacity(), model.capacity);
  ASSERT_EQ(slab.bump(), model.bump);
  ASSERT_EQ(slab.handed_out(), model.out.size());
  ASSERT_EQ(slab.available(), model.capacity - model.out.size());
  ASSERT_EQ(slab.empty(), model.out.empty());
}

class SlabTest : public testing::TestWithParam<int> {
 protected:
  SlabTest()
      : size_class_(static_cast<SizeClass>(GetParam())),
        slab_(size_class_),
        model_(kClassLayouts[size_class_].capacity) {}

  const SizeClass size_class_;
  SlabInDescriptor slab_;
  Model model_;
};

TEST_P(SlabTest, StartsWithNothingHandedOut) {
  ExpectAgree(*slab_, model_);
  EXPECT_EQ(slab_->size_class(), size_class_);
  EXPECT_EQ(slab_->first_unit(), 48U);
  EXPECT_EQ(slab_->next, kNoUnit);
  EXPECT_EQ(slab_->previous, kNoUnit);
}

TEST_P(SlabTest, GivesEachBlockOnce) {
  std::uint32_t indices[64];
  std::set<std::uint32_t> seen;
  while (slab_->available() != 0) {
    const std::uint32_t taken = slab_->Take(indices, 63);
    ASSERT_GT(taken, 0U);
    for (std::uint32_t i = 0; i < taken; ++i) {
      EXPECT_TRUE(seen.insert(indices[i]).second);
    }
  }
  EXPECT_EQ(slab_->Take(indices, 1), 0U);
  EXPECT_EQ(seen.size(), model_.capacity);
  EXPECT_EQ(*seen.rbegin(), model_.capacity - 1);
}

TEST_P(SlabTest, RefusesWhatIsNotOut) {
  EXPECT_FALSE(slab_->Put(0));
  EXPECT_FALSE(slab_->Put(model_.capacity - 1));
  std::uint32_t indices[2];
  ASSERT_EQ(slab_->Take(indices, 2), 2U);
  model_.Take(2);
  EXPECT_FALSE(slab_->Put(2));
  EXPECT_TRUE(slab_->Put(0));
  EXPECT_FALSE(slab_->Put(0));
  model_.Put(0);
  EXPECT_TRUE(slab_->IsFree(0));
  EXPECT_FALSE(slab_->IsFree(1));
  EXPECT_TRUE(slab_->IsFree(2));
  ExpectAgree(*slab_, model_);
}

TEST_P(SlabTest, BehavesLikeASet) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::uint32_t indices[64];
  for (int round = 0; round < 3000; ++round) {
    // Long phases of growth and of shrinking.
    const bool grow = (round / 400) % 2 == 0;
    if (random() % 4 == 0 ? !grow : grow) {
      const std::uint32_t count = random() % 64;
      const std::uint32_t taken = slab_->Take(indices, count);
      EXPECT_EQ(std::vector<std::uint32_t>(indices, indices + taken),
                model_.Take(count));
    } else {
      for (int i = 0; i < 30 && !model_.out.empty(); ++i) {
        const auto at = model_.out.lower_bound(
            static_cast<std::uint32_t>(random()) % model_.capacity);
        const std::uint32_t index =
            at == model_.out.end() ? *model_.out.begin() : *at;
        EXPECT_TRUE(slab_->Put(index));
        EXPECT_TRUE(model_.Put(index));
      }
      const auto any = static_cast<std::uint32_t>(random()) % model_.capacity;
      EXPECT_EQ(slab_->IsFree(any), model_.out.count(any) == 0);
      EXPECT_EQ(slab_->Put(any), model_.Put(any));
    }
    ExpectAgree(*slab_, model_);
    if (HasFatalFailure()) return;
  }
}

// The smallest, one whose capacity is no multiple of 64, the last Tiny one, the
// first Pool one, and the largest.
INSTANTIATE_TEST_SUITE_P(Classes, SlabTest,
                         testing::Values(0, 2, 17, 19, 20, 31, 43));

TEST(UnitDescriptorTest, SlabUnitIsTheRunsFirst) {
  for (unsigned c = 0; c < kClassCount; ++c) {
    const auto size_class = static_cast<SizeClass>(c);
    const std::uint32_t units = kClassLayouts[c].slab_units;
    for (UnitIndex unit = 0; unit < 3 * units; ++unit) {
      EXPECT_EQ(SlabUnitOf(size_class, unit), unit / units * units);
    }
  }
}

}  // namespace
}  // namespace hakmem
