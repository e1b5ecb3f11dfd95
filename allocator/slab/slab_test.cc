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

  // The indices that Take gives, the lowest first.
  std::vector<std::uint32_t> Take(std::uint32_t count) {
    std::vector<void*> blocks(count);
    blocks.resize(slab_->Take(kBase, blocks.data(), count));
    std::vector<std::uint32_t> indices;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      const auto offset = reinterpret_cast<Address>(*block) - kBase;
      EXPECT_EQ(offset % ClassBytes(slab_->size_class()), 0U);
      indices.push_back(
          static_cast<std::uint32_t>(offset / ClassBytes(slab_->size_class())));
    }
    return indices;
  }
  // Puts all back, in runs; whether each was out.
  bool Put(const std::vector<std::uint32_t>& indices) {
    std::vector<void*> blocks;
    for (const std::uint32_t index : indices) {
      blocks.push_back(reinterpret_cast<void*>(
          kBase + index * ClassBytes(slab_->size_class())));
    }
    bool sound = false;
    put_ = slab_->Put(kBase, blocks.data(),
                      static_cast<std::uint32_t>(blocks.size()), sound);
    EXPECT_EQ(put_ == blocks.size(), sound);
    return sound;
  }
  // How many the last Put has put.
  std::uint32_t put() const { return put_; }

  static constexpr Address kBase = 0x1230'0000;

 private:
  alignas(64) std::byte memory_[kFineDescriptorBytes];
  Slab* slab_;
  std::uint32_t put_ = 0;
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
  std::uint32_t index = 0;
  for (std::uint32_t begin = 0;;) {
    const Slab::Run run = slab.NextFreeRun(begin);
    const std::uint32_t end = run.count == 0 ? model.capacity : run.first;
    for (; index < end; ++index) ASSERT_TRUE(model.out.contains(index));
    if (run.count == 0) break;
    begin = run.first + run.count;
    for (; index < begin; ++index) ASSERT_FALSE(model.out.contains(index));
  }
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
  std::set<std::uint32_t> seen;
  while (slab_->available() != 0) {
    const std::vector<std::uint32_t> taken = slab_.Take(63);
    ASSERT_FALSE(taken.empty());
    for (const std::uint32_t index : taken) {
      EXPECT_TRUE(seen.insert(index).second);
    }
  }
  EXPECT_TRUE(slab_.Take(1).empty());
  EXPECT_EQ(seen.size(), model_.capacity);
  EXPECT_EQ(*seen.rbegin(), model_.capacity - 1);
}

TEST_P(SlabTest, SaysWhatWasNotOut) {
  EXPECT_EQ(slab_.Take(3), model_.Take(3));
  EXPECT_TRUE(slab_.Put({0}));
  model_.Put(0);
  EXPECT_TRUE(slab_->IsFree(0));
  EXPECT_FALSE(slab_->IsFree(1));
  EXPECT_TRUE(slab_->IsFree(3));
  ExpectAgree(*slab_, model_);
  EXPECT_FALSE(slab_.Put({1, 0, 2}));
  EXPECT_EQ(slab_.put(), 1U);
  model_.Put(1);
  ExpectAgree(*slab_, model_);
  EXPECT_FALSE(slab_.Put({2, 0, 2}));
  EXPECT_EQ(slab_.put(), 1U);
  model_.Put(2);
  EXPECT_FALSE(slab_.Put({3}));
  EXPECT_FALSE(slab_.Put({model_.capacity - 1}));
  EXPECT_EQ(slab_.put(), 0U);
  ExpectAgree(*slab_, model_);
}

TEST_P(SlabTest, PutEndsAtTheNextSlabsBlock) {
  EXPECT_EQ(slab_.Take(2).size(), 2U);
  const std::size_t slab_bytes =
      kClassLayouts[size_class_].slab_units * kUnitBytes;
  for (const Address other :
       {slab_.kBase - ClassBytes(size_class_), slab_.kBase + slab_bytes}) {
    void* const blocks[] = {reinterpret_cast<void*>(slab_.kBase),
                            reinterpret_cast<void*>(other)};
    bool sound = false;
    EXPECT_EQ(slab_->Put(slab_.kBase, blocks, 2, sound), 1U);
    EXPECT_TRUE(sound);
    EXPECT_EQ(slab_.Take(1), std::vector<std::uint32_t>{0});
  }
}

TEST_P(SlabTest, BehavesLikeASet) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < 3000; ++round) {
    // Long phases of growth and of shrinking.
    const bool grow = (round / 400) % 2 == 0;
    if (random() % 4 == 0 ? !grow : grow) {
      const std::uint32_t count = random() % 64;
      EXPECT_EQ(slab_.Take(count), model_.Take(count));
    } else {
      std::vector<std::uint32_t> indices;
      for (int i = 0; i < 30 && !model_.out.empty(); ++i) {
        const auto at = model_.out.lower_bound(
            static_cast<std::uint32_t>(random()) % model_.capacity);
        const std::uint32_t index =
            at == model_.out.end() ? *model_.out.begin() : *at;
        EXPECT_TRUE(model_.Put(index));
        indices.push_back(index);
      }
      EXPECT_TRUE(indices.empty() || slab_.Put(indices));
      const auto any = static_cast<std::uint32_t>(random()) % model_.capacity;
      EXPECT_EQ(slab_->IsFree(any), model_.out.count(any) == 0);
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
