// One lane of the stress workload: a table of blocks and the operations on it.
//
// Owns: the blocks in its table. Called by: stress_workload, which runs a lane
// on one thread after another, so that blocks outlive the thread that made
// them. Thread-safety: one thread at a time.
//
// Invariants:
//   SL1: every block in the table is live and holds its payload.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_LANE_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_LANE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/testing/stress_blocks.h"
#include "allocator/testing/stress_random.h"
#include "allocator/testing/stress_target.h"

namespace hakmem::stress {

struct Options {
  std::uint64_t seed = 1;
  unsigned threads = 4;
  std::uint64_t operations = 0;  // of all lanes together; 0: no bound
  double seconds = 0;            // 0: no bound
  std::size_t max_bytes = std::size_t{512} << 20;
  std::uint64_t life_operations =
      10'000;                         // of a thread, on average; 0: no churn
  std::uint64_t fork_every = 20'000;  // operations of a lane; 0: never
  bool threads_in_child = true;  // a forked child starts a thread of its own
  bool allow_failures = false;   // going on when an allocation returns null
};

struct Counters {
  std::uint64_t operations = 0;
  std::uint64_t allocations = 0;
  std::uint64_t reallocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t foreign_frees = 0;  // of blocks another lane allocated
  std::uint64_t failures = 0;       // null returned, with allow_failures
  std::uint64_t forks = 0;
  std::uint64_t threads = 0;

  void Add(const Counters& other);
};

class Lane {
 public:
  Lane(const Options& options, unsigned index, Target& target, Budget& budget,
       Exchange& exchange);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Does one operation, chosen at random.
  void Step();

  // Checks and frees a block that is in no table.
  void Retire(const Block& block);

  // Checks and frees every block in the table.
  void RetireAll();

  // There was no memory for the lane's next thread: counted, or fatal.
  void OnNoThread() { OnNull(0); }

  Random& random() { return random_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }

 private:
  enum class Setting : std::uint8_t { kParent, kChild };

  void StepIn(Setting setting);
  std::size_t ChooseSize();
  void AllocateInto(Block& slot);
  void Reallocate(Block& slot);
  void GiveAway(Block& slot);
  void TakeOver(Block& slot);
  void Fork();
  [[noreturn]] void RunChild();

  // A block of `size` bytes by one of the allocating functions, not yet
  // written; null is dealt with as the options say.
  Block Obtain(std::size_t size);
  void Write(const Block& block);
  // Fatal unless the first `valid` bytes are as they were written.
  void Check(const Block& block, const void* pointer, std::size_t valid);
  void Check(const Block& block) { Check(block, block.pointer, block.size); }
  void CheckPlacement(const Block& block);
  [[noreturn]] void Fail(const Block& block, const char* what);
  void OnNull(std::size_t size);
  std::uint64_t NextId() const;

  const Options& options_;
  const unsigned index_;
  Target& target_;
  Budget& budget_;
  Exchange& exchange_;
  Random random_;
  Counters counters_;
  std::vector<Block> table_;  // an empty slot has no pointer
};

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_LANE_H_
