// Any size, alignment and offset: its class and block are those that counting
// finds; and a slab gives and takes blocks like a set of numbers.

#include <cstddef>
#include <cstdint>
#include <new>
#include <set>

#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "fuzz/choices.h"

namespace hakmem {
namespace {

void CheckClass(std::size_t size, std::size_t alignment) {
  SizeClass expected = 0;
  while (ClassBytes(expected) < size || ClassBytes(expected) % alignment != 0) {
    ++expected;
  }
  HAK_CHECK_EQ(AlignedClassOf(size, alignment), expected);
  if (alignment <= kMinAlignmentBytes) HAK_CHECK_EQ(ClassOf(size), expected);
}

void CheckOffset(SizeClass size_class, std::uint32_t offset) {
  const auto bytes = static_cast<std::uint32_t>(ClassBytes(size_class));
  HAK_CHECK_EQ(BlockIndexAt(size_class, offset), offset / bytes);
}

// Any will do: the slab only computes with addresses.
constexpr Address kBase = 0x1230'0000;

void CheckSlab(SizeClass size_class, ByteChoices& choices) {
  alignas(64) std::byte memory[kFineDescriptorBytes];
  Slab& slab = *new (memory) Slab;
  slab.Start(size_class, 0);
  const std::uint32_t capacity = kClassLayouts[size_class].capacity;
  const std::size_t block_bytes = ClassBytes(size_class);
  std::set<std::uint32_t> out;
  while (!choices.empty()) {
    if (choices.Below(2) == 0) {
      void* blocks[64];
      const auto count = static_cast<std::uint32_t>(choices.Below(65));
      const std::uint32_t taken = slab.Take(kBase, blocks, count);
      HAK_CHECK(taken == count || slab.available() == 0);
      for (std::uint32_t i = 0; i < taken; ++i) {
        const Address offset = reinterpret_cast<Address>(blocks[i]) - kBase;
        HAK_CHECK_EQ(offset % block_bytes, 0U);
        const auto index = static_cast<std::uint32_t>(offset / block_bytes);
        HAK_CHECK_LT(index, capacity);
        HAK_CHECK(out.insert(index).second);
      }
    } else {
      const auto index = static_cast<std::uint32_t>(choices.Below(capacity));
      HAK_CHECK_EQ(slab.IsFree(index), out.count(index) == 0);
      if (out.erase(index) == 0) continue;
      void* const block = reinterpret_cast<void*>(kBase + index * block_bytes);
      bool sound = false;
      HAK_CHECK_EQ(slab.Put(kBase, &block, 1, sound), 1U);
      HAK_CHECK(sound);
    }
    slab.CheckInvariants();
    HAK_CHECK_EQ(slab.handed_out(), out.size());
    HAK_CHECK_EQ(slab.available(), capacity - out.size());
    HAK_CHECK_EQ(slab.empty(), out.empty());
  }
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::ByteChoices choices(data, size);
  const std::size_t block_bytes = choices.Below(hakmem::kMaxPoolBytes + 1);
  hakmem::CheckClass(block_bytes, std::size_t{1} << choices.Below(17));
  const auto size_class =
      static_cast<hakmem::SizeClass>(choices.Below(hakmem::kClassCount));
  const std::size_t slab_bytes =
      hakmem::kClassLayouts[size_class].slab_units * hakmem::kUnitBytes;
  hakmem::CheckOffset(size_class,
                      static_cast<std::uint32_t>(choices.Below(slab_bytes)));
  hakmem::CheckSlab(size_class, choices);
  return 0;
}
