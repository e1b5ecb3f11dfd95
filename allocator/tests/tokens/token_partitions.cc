// Blocks that hold pointers, blocks that hold none, and blocks of which nothing
// is known have memory of their own: no address and no SuperSlab is ever seen
// with two kinds, whoever frees, reallocates, forks or exits.
//
// token_partitions [mixed]: with HAKMEM_PARTITIONS=1 SuperSlabs have all kinds.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/tests/opaque.h"
#include "allocator/tests/tokens/token_calls.h"

namespace {

using hakmem::Opaque;

enum Kind { kUnknown, kData, kPointers, kKinds };

std::mutex g_lock;
// What each SuperSlab has had.
std::unordered_map<std::uintptr_t, Kind> g_kind_of;
std::size_t g_seen[kKinds];
std::size_t g_mixed = 0;

constexpr unsigned kSuperSlabShift = 21;

void* Seen(Kind kind, void* block) {
  if (block == nullptr) abort();
  const std::lock_guard<std::mutex> hold(g_lock);
  const auto [known, is_new] = g_kind_of.emplace(
      reinterpret_cast<std::uintptr_t>(block) >> kSuperSlabShift, kind);
  g_mixed += known->second != kind ? 1 : 0;
  ++g_seen[kind];
  return block;
}

// Types of each kind; clang hashes their names.
constexpr std::uint64_t kPointerBit = std::uint64_t{1} << 63;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Roll() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 20;
  }

 private:
  std::uint64_t state_;
};

std::uint64_t TokenOf(Kind kind, std::uint64_t type) {
  // The finalizer of splitmix64.
  std::uint64_t hash = type * 0x9e3779b97f4a7c15U;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9U;
  hash ^= hash >> 31;
  return kind == kPointers ? hash | kPointerBit : hash & ~kPointerBit;
}

std::size_t SizeOf(std::uint64_t roll) {
  constexpr std::size_t kMost[] = {64, 200, 1000, 1000, 3000, 60000, 400000};
  const std::uint64_t route = roll % 64;
  return 1 + (roll >> 8) % kMost[route < 56 ? route % 4 : route % 7];
}

struct Block {
  void* address = nullptr;
  Kind kind = kUnknown;
};

Block Allocate(Dice& dice) {
  const auto kind = static_cast<Kind>(dice.Roll() % kKinds);
  const std::size_t size = SizeOf(dice.Roll());
  const std::uint64_t how = dice.Roll() % 4;
  if (kind == kUnknown) {
    return {Seen(kind, how == 0   ? __alloc_token_malloc(size, 0)
                       : how == 1 ? __alloc_token_0_malloc(size)
                                  : Opaque(malloc(size))),
            kind};
  }
  const std::uint64_t token = TokenOf(kind, 1 + dice.Roll() % 100);
  return {Seen(kind, how == 0   ? __alloc_token_calloc(1, size, token)
                     : how == 1 ? __alloc_token_aligned_alloc(64, size, token)
                                : __alloc_token_malloc(size, token)),
          kind};
}

void Reallocate(Block& block, Dice& dice) {
  const std::size_t size = SizeOf(dice.Roll());
  // What a block holds does not change, whatever the call says.
  block.address =
      Seen(block.kind, dice.Roll() % 2 == 0
                           ? __alloc_token_realloc(block.address, size, 0)
                           : Opaque(realloc(Opaque(block.address), size)));
}

// Blocks that other threads free.
std::array<Block, 512> g_shared;

void Work(std::uint64_t seed, std::size_t calls) {
  Dice dice(seed);
  std::vector<Block> blocks(2000);
  for (std::size_t i = 0; i < calls; ++i) {
    Block& block = blocks[dice.Roll() % blocks.size()];
    if (dice.Roll() % 16 == 0 && block.address != nullptr) {
      Reallocate(block, dice);
      continue;
    }
    if (dice.Roll() % 4 == 0) {
      const std::lock_guard<std::mutex> hold(g_lock);
      std::swap(block, g_shared[dice.Roll() % g_shared.size()]);
    }
    free(Opaque(block.address));
    block = Allocate(dice);
  }
  for (const Block& block : blocks) free(Opaque(block.address));
}

void InThreads(std::uint64_t seed, std::size_t calls) {
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([=] { Work(seed + i, calls); });
  }
  for (std::thread& thread : threads) thread.join();
}

int Verdict(bool mixed) {
  for (const std::size_t seen : g_seen) {
    if (seen < 1000) {
      fprintf(stderr, "a kind had %zu blocks\n", seen);
      return 1;
    }
  }
  if ((g_mixed != 0) == mixed) return 0;
  fprintf(stderr, "%zu blocks lay in a SuperSlab of another kind\n", g_mixed);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool mixed = argc == 2 && std::string_view(argv[1]) == "mixed";
  Work(1, 40'000);
  // Each time, threads that have not been before have the heaps of others.
  for (std::uint64_t round = 0; round < 4; ++round) {
    InThreads(100 * round, 10'000);
  }
  const pid_t child = fork();
  if (child == 0) {
    Work(2, 10'000);
    InThreads(7, 5'000);
    _exit(Verdict(mixed));
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "the child says %x\n", static_cast<unsigned>(status));
    return 1;
  }
  Work(3, 10'000);
  return Verdict(mixed);
}
