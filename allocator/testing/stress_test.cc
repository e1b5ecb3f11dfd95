// The stress workload finds what it is there to find: each target here has one
// fault, and the run must end with its sentence.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "allocator/testing/stress_payload.h"
#include "allocator/testing/stress_workload.h"

namespace hakmem::stress {
namespace {

class SoundTarget : public Target {
 public:
  void* Allocate(std::size_t size) override { return std::malloc(size); }
  void* AllocateZeroed(std::size_t count, std::size_t size) override {
    return std::calloc(count, size);
  }
  void* AllocateAligned(std::size_t alignment, std::size_t size) override {
    void* block = nullptr;
    return posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
  }
  void* Reallocate(void* block, std::size_t size) override {
    return std::realloc(block, size);
  }
  void Free(void* block) override { std::free(block); }
  void FreeSized(void* block, std::size_t /*size*/,
                 std::size_t /*alignment*/) override {
    std::free(block);
  }
  std::size_t UsableSize(void* block) override {
    return malloc_usable_size(block);
  }
  pid_t Fork() override { return fork(); }
  void LeaveThread() override {}

 protected:
  // True once in `count` calls, of whichever threads.
  bool NowAndThen(unsigned count) { return ++calls_ % count == 0; }

 private:
  std::atomic<unsigned> calls_{0};
};

Options Small() {
  Options options;
  options.threads = 3;
  options.operations = 60'000;
  options.max_bytes = std::size_t{32} << 20;
  options.life_operations = 2'000;
  options.fork_every = 20'000;
  // Sanitizers do not follow threads into a forked child.
  options.threads_in_child = false;
  return options;
}

Outcome RunOn(Target& target, const Options& options = Small()) {
  const std::atomic<bool> stop{false};
  return RunStress(options, target, stop);
}

TEST(StressTest, SoundTargetPasses) {
  SoundTarget target;
  const Outcome outcome = RunOn(target);
  EXPECT_EQ(outcome.counters.operations, 60'000U);
  EXPECT_EQ(outcome.counters.allocations, outcome.counters.frees);
  EXPECT_GT(outcome.counters.foreign_frees, 0U);
  EXPECT_GT(outcome.counters.reallocations, 0U);
  EXPECT_GT(outcome.counters.threads, 10U);
  EXPECT_EQ(outcome.counters.failures, 0U);
  EXPECT_LE(outcome.peak_bytes, Small().max_bytes);
}

TEST(StressTest, EndsWhenTold) {
  SoundTarget target;
  Options options = Small();
  options.operations = 0;
  const std::atomic<bool> stop{true};
  const Outcome outcome = RunStress(options, target, stop);
  EXPECT_EQ(outcome.counters.allocations, outcome.counters.frees);
}

TEST(StressTest, FailuresAreCountedOnRequest) {
  class : public SoundTarget {
   public:
    void* Allocate(std::size_t size) override {
      return NowAndThen(10) ? nullptr : SoundTarget::Allocate(size);
    }
    void* Reallocate(void* block, std::size_t size) override {
      return NowAndThen(10) ? nullptr : SoundTarget::Reallocate(block, size);
    }
  } target;
  Options options = Small();
  options.allow_failures = true;
  EXPECT_GT(RunOn(target, options).counters.failures, 0U);
}

class StressDeathTest : public testing::Test {
 protected:
  // The statement runs in a fresh process, since the workload has threads.
  StressDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StressDeathTest, NullIsFatalUnlessAllowed) {
  class : public SoundTarget {
   public:
    void* Allocate(std::size_t size) override {
      return NowAndThen(1000) ? nullptr : SoundTarget::Allocate(size);
    }
  } target;
  EXPECT_DEATH(RunOn(target),
               "stress: FAILED: out of memory\n.*\n  seed 1, threads 3, lane");
}

TEST_F(StressDeathTest, OverlapIsFound) {
  // All blocks of 33 to 64 bytes are the same one.
  class : public SoundTarget {
   public:
    void* Allocate(std::size_t size) override {
      return size > 32 && size <= 64 ? shared_ : SoundTarget::Allocate(size);
    }
    void* Reallocate(void* block, std::size_t size) override {
      if (block != shared_) return SoundTarget::Reallocate(block, size);
      void* const moved = SoundTarget::Allocate(size);
      return std::memcpy(moved, block, std::min(size, sizeof(shared_)));
    }
    void Free(void* block) override {
      if (block != shared_) SoundTarget::Free(block);
    }
    void FreeSized(void* block, std::size_t /*size*/,
                   std::size_t /*alignment*/) override {
      Free(block);
    }
    std::size_t UsableSize(void* block) override {
      return block == shared_ ? sizeof(shared_)
                              : SoundTarget::UsableSize(block);
    }

   private:
    alignas(16) unsigned char shared_[64];
  } target;
  Options options = Small();
  options.threads = 1;
  EXPECT_DEATH(RunOn(target, options), "stress: FAILED: byte ");
}

TEST_F(StressDeathTest, ReallocThatLosesBytesIsFound) {
  class : public SoundTarget {
   public:
    void* Reallocate(void* block, std::size_t size) override {
      auto* const moved =
          static_cast<unsigned char*>(SoundTarget::Reallocate(block, size));
      if (size > 8 && NowAndThen(100)) moved[4] ^= 1;
      return moved;
    }
  } target;
  EXPECT_DEATH(RunOn(target), "stress: FAILED: byte 4 of ");
}

TEST_F(StressDeathTest, DirtyCallocIsFound) {
  class : public SoundTarget {
   public:
    void* AllocateZeroed(std::size_t count, std::size_t size) override {
      void* const block = SoundTarget::AllocateZeroed(count, size);
      if (count * size > 8 && NowAndThen(100)) std::memset(block, 1, 1);
      return block;
    }
  } target;
  EXPECT_DEATH(RunOn(target), "stress: FAILED: calloc gave bytes");
}

TEST_F(StressDeathTest, MisalignmentIsFound) {
  class : public SoundTarget {
   public:
    void* AllocateAligned(std::size_t alignment, std::size_t size) override {
      return SoundTarget::AllocateAligned(
          alignment > 64 ? alignment / 2 : alignment, size);
    }
  } target;
  EXPECT_DEATH(RunOn(target), "stress: FAILED: misaligned");
}

TEST_F(StressDeathTest, ShortUsableSizeIsFound) {
  class : public SoundTarget {
   public:
    std::size_t UsableSize(void* block) override {
      return SoundTarget::UsableSize(block) / 2;
    }
  } target;
  EXPECT_DEATH(RunOn(target), "stress: FAILED: usable size below");
}

TEST_F(StressDeathTest, TroubleInTheForkedChildIsFound) {
  class : public SoundTarget {
   public:
    pid_t Fork() override {
      const pid_t child = SoundTarget::Fork();
      in_child_ = child == 0;
      return child;
    }
    void* Allocate(std::size_t size) override {
      return in_child_ ? nullptr : SoundTarget::Allocate(size);
    }

   private:
    std::atomic<bool> in_child_{false};
  } target;
  Options options = Small();
  options.fork_every = 100;  // some lane forks, however they share the work
  EXPECT_DEATH(RunOn(target, options),
               "stress: FAILED: the forked child ended");
}

TEST(StressPayloadTest, EveryWrittenByteIsChecked) {
  unsigned char block[200];
  for (std::size_t size = 0; size <= sizeof(block); ++size) {
    const std::uint64_t key = PayloadKey(1, 2, size);
    FillPayload(block, size, key);
    EXPECT_EQ(FindDamage(block, size, size, key), std::nullopt);
    for (std::size_t i = 0; i < size; ++i) {
      block[i] ^= 0x80;
      EXPECT_EQ(FindDamage(block, size, size, key), i);
      EXPECT_EQ(FindDamage(block, size, i, key), std::nullopt);
      block[i] ^= 0x80;
    }
  }
}

}  // namespace
}  // namespace hakmem::stress
