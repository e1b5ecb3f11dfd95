// A program of calls whose names have to be found: one that is inlined, and one
// with a name as Rust mangles it.

#include <cstddef>
#include <memory>
#include <vector>

namespace {

using Blocks = std::vector<std::unique_ptr<char[]>>;

constexpr std::size_t kBlocks = 1024;
constexpr std::size_t kBlockBytes = 4096;

[[gnu::always_inline]] inline void InlinedAllocation(Blocks& blocks) {
  blocks.emplace_back(new char[kBlockBytes]);
}

[[gnu::noinline]] void PlantedCaller(Blocks& blocks) {
  for (std::size_t i = 0; i < kBlocks; ++i) InlinedAllocation(blocks);
}

}  // namespace

// demo::store::h0123456789abcdef: Rust's names end with a hash.
[[gnu::noinline]] void RustStore(Blocks& blocks) __asm__(
    "_ZN4demo5store17h0123456789abcdefE");

void RustStore(Blocks& blocks) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(new char[kBlockBytes]);
  }
}

int main() {
  auto* const kept = new Blocks();
  kept->reserve(2 * kBlocks);
  PlantedCaller(*kept);
  RustStore(*kept);
  return 0;
}
