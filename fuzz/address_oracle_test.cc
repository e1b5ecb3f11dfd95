#include "fuzz/address_oracle.h"

#include <cstddef>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class AddressOracleTest : public testing::Test {
 protected:
  Address Allocate(std::size_t bytes) {
    void* const block = test_.allocator->Allocate(test_.self, bytes);
    model_.Add(block, bytes, kMinAlignmentBytes,
               test_.allocator->UsableSize(test_.self, block));
    return reinterpret_cast<Address>(block);
  }

  TestAllocator<V::kConfig> test_;
  ModelHeap model_;
  AddressOracle<V::kConfig> oracle_{*test_.allocator, model_};
};

using Variants = testing::Types<Variant<kRelease>, Variant<kHardened>>;
TYPED_TEST_SUITE(AddressOracleTest, Variants);

constexpr std::size_t kOfEachRoute[] = {64, 5000, 200'000, kMaxSpanBytes + 1};

TYPED_TEST(AddressOracleTest, TrueWordsPass) {
  for (const std::size_t bytes : kOfEachRoute) {
    const Address block = this->Allocate(bytes);
    for (const Address at :
         {block, block + 1, block + bytes / 2, block + bytes - 1, block + bytes,
          block + 2 * bytes, block - 1}) {
      this->oracle_.Check(at);
      this->oracle_.Ask(at);
    }
  }
  this->oracle_.Check(0);
}

// The model is wrong instead.
TYPED_TEST(AddressOracleTest, LiveBlockThatIsNone) {
  for (const std::size_t bytes : kOfEachRoute) {
    const Address block = this->Allocate(bytes);
    this->model_.Remove(reinterpret_cast<void*>(block));
    EXPECT_DEATH(this->oracle_.Check(block), "internal check failed");
    EXPECT_DEATH(this->oracle_.Check(block + bytes / 2),
                 "internal check failed");
  }
}

TYPED_TEST(AddressOracleTest, FreedBlockThatIsLive) {
  for (const std::size_t bytes : kOfEachRoute) {
    const Address block = this->Allocate(bytes);
    auto* const pointer = reinterpret_cast<void*>(block);
    this->test_.allocator->Free(this->test_.self, pointer);
    EXPECT_DEATH(this->oracle_.Check(block + 1), "internal check failed");
  }
}

TYPED_TEST(AddressOracleTest, OtherSize) {
  for (const std::size_t bytes : kOfEachRoute) {
    const Address block = this->Allocate(bytes);
    auto* const pointer = reinterpret_cast<void*>(block);
    const ModelHeap::Block facts = this->model_.At(pointer);
    this->model_.Remove(pointer);
    this->model_.Add(pointer, facts.size / 2, facts.alignment,
                     2 * facts.usable);
    EXPECT_DEATH(this->oracle_.Check(block), "internal check failed");
  }
}

}  // namespace
}  // namespace hakmem
