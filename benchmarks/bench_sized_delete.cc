// As bench_random_mixed, by operator new and operator delete, to which the size
// is told, or not: what an allocator makes of knowing it.
#include <new>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kSized, kUnsized };

// A type knows its size; here each block begins with its own. Both ways of
// deleting read it, so that they differ by the call alone.
struct Head {
  std::size_t size;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t form, iterations, slots, seed;
  ReadArguments(argc, argv,
                {{"FORM", {"sized", "unsized"}, &form},
                 {"ITERATIONS", 10'000'000, &iterations},
                 {"SLOTS", 8192, &slots},
                 {"SEED", 1, &seed, 0}});
  std::vector<void*> table(slots);
  Random random(seed);
  std::size_t freed = 0;
  const auto fill = [&random] {
    const std::size_t size = random.Between(16, 1040);
    // Called as functions, not by a new-expression, which compilers may leave
    // out together with its delete.
    void* const block = ::operator new(size);
    Touch(block, size);
    static_cast<Head*>(block)->size = size;
    return block;
  };
  const auto empty = [form, &freed](void* block) {
    if (block == nullptr) return;
    const std::size_t size = static_cast<Head*>(block)->size;
    freed += size;
    if (form == kSized) {
      ::operator delete(block, size);
    } else {
      ::operator delete(block);
    }
  };
  ToggleSlots(table, random, WarmUpOf(iterations, slots), fill, empty);
  Phase phase;
  ToggleSlots(table, random, iterations, fill, empty);
  phase.Stop();
  for (void* block : table) empty(block);
  // The sum is used, else the unsized form would not read the size.
  if (freed == 0) RejectArguments(argv[0], "there was nothing to delete");
  Report(phase, iterations);
}
