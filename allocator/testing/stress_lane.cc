#include "allocator/testing/stress_lane.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "allocator/testing/stress_payload.h"

namespace hakmem::stress {
namespace {

constexpr std::size_t kTableSlots = 2048;
constexpr unsigned kLaneShift = 48;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

// The status a child ends with when all was well; distinct from what exit(),
// abort() or a sanitizer use.
constexpr int kChildFine = 42;
constexpr int kChildOperations = 400;

}  // namespace

void Counters::Add(const Counters& other) {
  operations += other.operations;
  allocations += other.allocations;
  reallocations += other.reallocations;
  frees += other.frees;
  foreign_frees += other.foreign_frees;
  failures += other.failures;
  forks += other.forks;
  threads += other.threads;
}

Lane::Lane(const Options& options, unsigned index, Target& target,
           Budget& budget, Exchange& exchange)
    : options_(options),
      index_(index),
      target_(target),
      budget_(budget),
      exchange_(exchange),
      random_(Mix(options.seed) + index),
      table_(kTableSlots) {}

void Lane::Step() {
  ++counters_.operations;
  if (options_.fork_every != 0 && random_.OneIn(options_.fork_every)) {
    Fork();
    return;
  }
  StepIn(Setting::kParent);
}

void Lane::StepIn(Setting setting) {
  Block& slot = table_[random_.Below(table_.size())];
  const std::uint64_t choice = random_.Below(100);
  const bool may_exchange = setting == Setting::kParent;
  if (slot.pointer == nullptr) {
    if (choice < 20 && may_exchange) {
      TakeOver(slot);
    } else {
      AllocateInto(slot);
    }
    return;
  }
  if (choice < 20 && may_exchange) {
    GiveAway(slot);
  } else if (choice < 35) {
    Reallocate(slot);
  } else if (choice < 45) {
    Check(slot);
  } else {
    Retire(slot);
    slot = Block();
  }
}

// Every route, small sizes most often; one in eight at the edge of a size
// class, a page or a unit.
std::size_t Lane::ChooseSize() {
  const std::uint64_t choice = random_.Below(20'000);
  std::size_t size = 0;
  if (choice < 13'000) {
    size = random_.LogBetween(1, kKiB);
  } else if (choice < 19'600) {
    size = random_.LogBetween(kKiB, 64 * kKiB);
  } else if (choice < 19'980) {
    size = random_.LogBetween(64 * kKiB, 2 * kMiB);
  } else if (choice < 19'998) {
    size = random_.LogBetween(2 * kMiB, 64 * kMiB);
  } else {
    size = random_.LogBetween(256 * kMiB, 320 * kMiB);
  }
  if (random_.OneIn(8)) {
    const std::size_t step =
        std::max<std::size_t>(std::bit_floor(size) / 4, 16);
    size = (size + step - 1) / step * step + random_.Below(3) - 1;
  }
  return random_.OneIn(500) ? 0 : size;
}

std::uint64_t Lane::NextId() const {
  return std::uint64_t{index_} << kLaneShift | counters_.operations;
}

Block Lane::Obtain(std::size_t size) {
  Block block{.size = size, .id = NextId()};
  const std::uint64_t way = random_.Below(10);
  if (way < 6) {
    block.pointer = target_.Allocate(size);
  } else if (way < 8) {
    // A count that divides the size, so that the product is the size.
    const std::size_t count = size % 3 == 0 ? 3 : 1;
    block.pointer = target_.AllocateZeroed(count, size / count);
    if (block.pointer != nullptr && FindNonZero(block.pointer, size)) {
      Fail(block, "calloc gave bytes that are not zero");
    }
  } else {
    block.alignment = std::size_t{1}
                      << random_.Between(3, random_.OneIn(50) ? 22 : 13);
    block.pointer = target_.AllocateAligned(block.alignment, size);
  }
  return block;
}

void Lane::AllocateInto(Block& slot) {
  const std::size_t size = ChooseSize();
  if (!budget_.Take(size)) return;
  const Block block = Obtain(size);
  if (block.pointer == nullptr) {
    budget_.Cancel(size);
    OnNull(size);
    return;
  }
  ++counters_.allocations;
  budget_.Keep(size);
  CheckPlacement(block);
  Write(block);
  slot = block;
}

void Lane::Reallocate(Block& slot) {
  // Half the time near the old size, where a block may stay where it is.
  const std::size_t size = random_.OneIn(2)
                               ? ChooseSize()
                               : slot.size / 2 + random_.Below(slot.size + 16);
  if (!budget_.Take(size)) return;
  if (slot.size <= 64 * kKiB) Check(slot);
  // C leaves realloc to zero bytes open; one byte is well-defined everywhere.
  const std::size_t given = std::max<std::size_t>(size, 1);
  void* const moved = target_.Reallocate(slot.pointer, given);
  if (moved == nullptr) {
    budget_.Cancel(size);
    OnNull(size);
    Check(slot);
    return;
  }
  ++counters_.reallocations;
  Check(slot, moved, std::min(slot.size, size));
  budget_.Return(slot.size);
  budget_.Keep(size);
  slot = Block{.pointer = moved, .size = size, .id = NextId()};
  CheckPlacement(slot);
  Write(slot);
}

void Lane::GiveAway(Block& slot) {
  if (exchange_.Put(slot, random_)) slot = Block();
}

void Lane::TakeOver(Block& slot) {
  const auto block = exchange_.Get(random_);
  if (!block) return;
  if (random_.OneIn(2)) {
    Retire(*block);
  } else {
    slot = *block;
  }
}

void Lane::Retire(const Block& block) {
  Check(block);
  ++counters_.frees;
  counters_.foreign_frees += block.id >> kLaneShift != index_;
  // A block that realloc cut to nothing was asked for as one byte.
  const bool may_be_sized = block.size != 0;
  if (may_be_sized && random_.OneIn(4)) {
    target_.FreeSized(block.pointer, block.size, block.alignment);
  } else {
    target_.Free(block.pointer);
  }
  budget_.Return(block.size);
}

void Lane::RetireAll() {
  for (Block& slot : table_) {
    if (slot.pointer != nullptr) Retire(slot);
    slot = Block();
  }
}

void Lane::Fork() {
  ++counters_.forks;
  const pid_t child = target_.Fork();
  if (child == 0) RunChild();
  if (child < 0) {
    if (errno == ENOMEM || errno == EAGAIN) {
      OnNull(0);
      return;
    }
    Fail(Block(), "fork failed");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) Fail(Block(), "waitpid failed");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kChildFine) return;
  char what[80];
  std::snprintf(what, sizeof(what), "the forked child ended with %s %d",
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  Fail(Block(), what);
}

// The other lanes' threads do not exist here, and the exchange's mutexes may
// be held by them for ever: the child keeps to its own table.
void Lane::RunChild() {
  const auto work = [this] {
    for (int i = 0; i < kChildOperations; ++i) {
      ++counters_.operations;
      StepIn(Setting::kChild);
    }
  };
  work();
  if (options_.threads_in_child && !options_.allow_failures) {
    std::thread([&] {
      work();
      target_.LeaveThread();
    }).join();
  }
  RetireAll();
  _exit(kChildFine);
}

void Lane::Write(const Block& block) {
  FillPayload(block.pointer, block.size,
              PayloadKey(options_.seed, block.id, block.size));
}

void Lane::Check(const Block& block, const void* pointer, std::size_t valid) {
  const std::uint64_t key = PayloadKey(options_.seed, block.id, block.size);
  const auto damage = FindDamage(pointer, block.size, valid, key);
  if (!damage) return;
  Block where = block;
  where.pointer = const_cast<void*>(pointer);
  char what[80];
  std::snprintf(what, sizeof(what), "byte %zu of %zu is 0x%02x, not 0x%02x",
                *damage, valid,
                unsigned{static_cast<const unsigned char*>(pointer)[*damage]},
                unsigned{PayloadByte(key, *damage)});
  Fail(where, what);
}

void Lane::CheckPlacement(const Block& block) {
  // C's demand for a block of that size; hakmem's own promise of sixteen is the
  // conformance suite's matter.
  const std::size_t natural = std::min<std::size_t>(
      std::bit_floor(std::max<std::size_t>(block.size, 1)),
      alignof(std::max_align_t));
  const std::size_t alignment = std::max(block.alignment, natural);
  if (reinterpret_cast<std::uintptr_t>(block.pointer) % alignment != 0) {
    Fail(block, "misaligned");
  }
  if (random_.OneIn(16) && target_.UsableSize(block.pointer) < block.size) {
    Fail(block, "usable size below the size asked for");
  }
}

void Lane::OnNull(std::size_t size) {
  if (!options_.allow_failures) {
    Fail(Block{.size = size, .id = NextId()}, "out of memory");
  }
  ++counters_.failures;
}

void Lane::Fail(const Block& block, const char* what) {
  char text[400];
  const int length = std::snprintf(
      text, sizeof(text),
      "stress: FAILED: %s\n"
      "  block %p of %zu bytes, alignment %zu, made by lane %" PRIu64
      " in operation %" PRIu64
      "\n"
      "  seed %" PRIu64 ", threads %u, lane %u, operation %" PRIu64 "\n",
      what, block.pointer, block.size, block.alignment, block.id >> kLaneShift,
      block.id & ((std::uint64_t{1} << kLaneShift) - 1), options_.seed,
      options_.threads, index_, counters_.operations);
  // Not stdio: its lock may be held for ever in a forked child.
  (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  std::abort();
}

}  // namespace hakmem::stress
