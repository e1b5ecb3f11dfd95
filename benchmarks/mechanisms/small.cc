// Patterns of one thread, of blocks to 64 KiB.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "benchmarks/mechanisms/patterns.h"

namespace hakmem::bench {
namespace {

// At least so many bytes, in blocks of `low` to `high`.
std::vector<void*> Fill(Random& random, std::size_t bytes, std::size_t low,
                        std::size_t high) {
  std::vector<void*> blocks;
  for (std::size_t total = 0; total < bytes;) {
    const std::size_t size = random.Between(low, high);
    blocks.push_back(AllocateTouched(size));
    total += size;
  }
  return blocks;
}

void Shuffle(Random& random, std::vector<void*>& blocks) {
  for (std::size_t i = blocks.size(); i > 1; --i) {
    std::swap(blocks[i - 1], blocks[random.Below(i)]);
  }
}

void FreeAll(std::vector<void*>& blocks) {
  for (void*& block : blocks) {
    Free(block);
    block = nullptr;
  }
}

// A program that has not begun.
void Start() {
  PrintFigure("virtual_peak", VirtualPeakKiB());
  PrintFigure("all_faults", MinorFaults());
}

// A small script's heap: 3,000 blocks, of which half come and go.
void SmallProgram() {
  Random random(1);
  std::vector<void*> blocks(3000);
  for (int round = 0; round < 4; ++round) {
    for (void*& block : blocks) {
      if (round > 0 && random.Below(2) == 0) continue;
      Free(block);
      const std::size_t size = std::size_t{16} << random.Below(7);
      block = Allocate(random.Between(size / 2, size));
      Touch(block, size / 2);
    }
  }
  PrintFigure("all_faults", MinorFaults());
}

// A gigabyte of small blocks, freed, and given back.
void FreedAndTrimmed() {
  {
    Random random(1);
    std::vector<void*> blocks = Fill(random, 1024 * kMiB, 64, 512);
    FreeAll(blocks);
  }
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
}

// A timer that trims a busy heap 50 times.
void TrimOnATimer() {
  Random random(1);
  std::vector<void*> blocks = Fill(random, 64 * kMiB, 16, 4096);
  Shuffle(random, blocks);
  for (std::size_t i = 0; i < blocks.size() / 2; ++i) {
    Free(std::exchange(blocks[i], nullptr));
  }
  malloc_trim(0);
  for (int timer = 0; timer < 50; ++timer) {
    Measure([&] { malloc_trim(0); });
    for (int i = 0; i < 300; ++i) {
      void*& block = blocks[random.Below(blocks.size())];
      Free(block);
      block = AllocateTouched(random.Between(16, 4096));
    }
  }
  CountOperations(50);
}

// Of 200 MiB one block in 100 lives on.
void Holes(std::size_t low, std::size_t high) {
  Random random(1);
  std::vector<void*> blocks = Fill(random, 200 * kMiB, low, high);
  std::vector<void*> live;
  for (void* block : blocks) {
    if (random.Below(100) == 0) {
      live.push_back(block);
    } else {
      Free(block);
    }
  }
  PrintFigure("freed", HeldKiB());
  Idle(20);
  PrintFigure("idle", HeldKiB());
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
  FreeAll(live);
}

// All in random order, and then hardly a call.
void Silence() {
  Random random(1);
  std::vector<void*> blocks;
  for (int i = 0; i < 1'000'000; ++i) {
    constexpr std::size_t kSizes[] = {24, 40, 100};
    blocks.push_back(AllocateTouched(kSizes[i % 3]));
    PassUs(i % 2);
  }
  Shuffle(random, blocks);
  FreeAll(blocks);
  PrintFigure("freed", HeldKiB());
  Idle(3);
  PrintFigure("idle", HeldKiB());
}

// Half-way between 32 bytes and 4 KiB, and from the start again: a queue of 16
// MiB whose sizes drift.
void Drift() {
  Random random(1);
  std::vector<std::pair<void*, std::size_t>> queue(16 * kMiB / 32);
  std::uint64_t oldest = 0, next = 0;
  std::size_t live = 0, center = 64;
  for (int phase = 0; phase < 24; ++phase) {
    for (int i = 0; i < 200'000; ++i) {
      const std::size_t size = random.Between(center / 2, center);
      queue[next++ % queue.size()] = {AllocateTouched(size), size};
      PassUs(i % 16 == 0);
      for (live += size; live > 16 * kMiB - 8192; ++oldest) {
        Free(queue[oldest % queue.size()].first);
        live -= queue[oldest % queue.size()].second;
      }
    }
    center = center >= 4096 ? 64 : center + center / 2;
  }
}

// Bursts of a batch that is freed in order, and of one freed in reverse.
void Sh8Bench() {
  Random random(1);
  std::vector<void*> blocks(12'600);
  const auto burst = [&] {
    for (int reverse = 0; reverse < 2; ++reverse) {
      for (void*& block : blocks) {
        // Most are of 16 bytes, each doubling half as many.
        std::size_t size = 16;
        while (size < 100'000 && random.Below(2) == 0) size *= 2;
        block = Allocate(size);
      }
      if (reverse == 1) std::reverse(blocks.begin(), blocks.end());
      FreeAll(blocks);
    }
  };
  burst();
  Measure([&] {
    for (int i = 0; i < 4; ++i) burst();
  });
  CountOperations(8 * blocks.size());
}

// Bursts of 50,000 blocks, some 800 magazines.
void Bursts() {
  std::vector<void*> blocks(50'000);
  const auto burst = [&] {
    for (void*& block : blocks) block = Allocate(64);
    FreeAll(blocks);
  };
  burst();
  burst();
  Measure([&] {
    for (int i = 0; i < 4; ++i) burst();
  });
  CountOperations(4 * blocks.size());
}

// A batch by sizes, of which three quarters are freed in order, the rest in
// reverse when the batch after the next has come.
void Sh6Bench() {
  std::array<std::vector<void*>, 3> kept;
  std::vector<void*> batch(4000);
  const auto round = [&](std::size_t turn) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i] = Allocate(1 + i * 7 % 1000);
    }
    std::vector<void*>& rest = kept[turn % kept.size()];
    for (std::size_t i = rest.size(); i > 0; --i) Free(rest[i - 1]);
    rest.assign(batch.begin() + 3000, batch.end());
    for (std::size_t i = 0; i < 3000; ++i) Free(batch[i]);
  };
  for (std::size_t i = 0; i < 6; ++i) round(i);
  Measure([&] {
    for (std::size_t i = 0; i < 15; ++i) round(i);
  });
  CountOperations(15 * batch.size());
  for (std::vector<void*>& rest : kept) FreeAll(rest);
}

struct Node {
  Node* left;
  Node* right;
  char payload[48];
};

Node* Build(int depth) {
  if (depth == 0) return nullptr;
  auto* const node = static_cast<Node*>(AllocateTouched(sizeof(Node)));
  PassUs(depth == 5);
  node->left = Build(depth - 1);
  node->right = Build(depth - 1);
  return node;
}

void Drop(Node* node, int depth) {
  if (node == nullptr) return;
  PassUs(depth == 5);
  Drop(node->left, depth - 1);
  Drop(node->right, depth - 1);
  Free(node);
}

// Four times a tree of 4 million nodes, some 250 MiB.
void Tree() {
  Measure([] {
    for (int i = 0; i < 4; ++i) Drop(Build(22), 22);
  });
  PrintFigure("freed", HeldKiB());
  Idle(4);
  PrintFigure("idle", HeldKiB());
}

// 20 children that each replace 500 of the parent's 20,000 blocks.
void ForkServer() {
  Random random(1);
  std::vector<void*> blocks(20'000);
  const auto replace = [&](void*& block) {
    Free(block);
    block = AllocateTouched(random.Between(16, 1040));
  };
  for (void*& block : blocks) replace(block);
  Measure([&] {
    for (int i = 0; i < 20; ++i) {
      random.Next();
      const pid_t child = fork();
      if (child == 0) {
        for (int j = 0; j < 500; ++j) replace(blocks[random.Below(20'000)]);
        _exit(0);
      }
      int status = -1;
      if (waitpid(child, &status, 0) != child || status != 0) std::abort();
    }
  });
}

}  // namespace

const std::vector<Pattern> kSmallPatterns = {
    {"start", Start},
    {"small_program", SmallProgram},
    {"freed_and_trimmed", FreedAndTrimmed},
    {"trim_on_a_timer", TrimOnATimer},
    {"holes_16_512", [] { Holes(16, 512); }},
    {"holes_16_4096", [] { Holes(16, 4096); }},
    {"holes_5000_9000", [] { Holes(5000, 9000); }},
    {"silence", Silence},
    {"drift", Drift},
    {"bursts", Bursts},
    {"sh8bench", Sh8Bench},
    {"sh6bench", Sh6Bench},
    {"tree", Tree},
    {"fork_server", ForkServer},
};

}  // namespace hakmem::bench
