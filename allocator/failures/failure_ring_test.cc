#include "allocator/failures/failure_ring.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Every field follows from `number`, so that a mixture is noticed.
FailureEvent Numbered(std::uint64_t number) {
  FailureEvent event;
  event.monotonic_ns = number;
  event.size_bytes = number * 3;
  event.alignment_bytes = number * 5;
  event.limit_value = number * 7;
  event.thread_id = static_cast<int>(number % 1000);
  event.error_number = static_cast<int>(number % 100);
  event.reason = static_cast<FailureReason>(number % 4);
  event.detail = static_cast<FailureDetail>(number % kFailureDetailCount);
  event.route = static_cast<Route>(number % 4);
  event.frames[kMaxFailureFrames - 1] = number * 9;
  return event;
}

void RecordNumbered(FailureRing& ring, std::uint64_t number) {
  FailureEvent event = Numbered(number);
  ring.Record(event);
}

bool IsWhole(const FailureEvent& event) {
  FailureEvent wanted = Numbered(event.monotonic_ns);
  wanted.sequence = event.sequence;
  wanted.disposition = event.disposition;
  return std::memcmp(&event, &wanted, sizeof(event)) == 0;
}

// The newest first, at most `capacity`; returns how many.
std::size_t CopyTo(const FailureRing& ring, FailureEvent* events,
                   std::size_t capacity) {
  const std::uint64_t last = ring.recorded();
  std::size_t count = 0;
  for (std::uint64_t number = last;
       number >= FailureRing::FirstKept(last) && count < capacity; --number) {
    if (ring.CopyOne(number, events[count])) ++count;
  }
  return count;
}

std::vector<FailureEvent> CopyOf(const FailureRing& ring,
                                 std::size_t capacity) {
  std::vector<FailureEvent> events(capacity);
  events.resize(CopyTo(ring, events.data(), capacity));
  return events;
}

TEST(FailureRing, StartsEmpty) {
  static constinit FailureRing ring;
  EXPECT_EQ(ring.recorded(), 0u);
  EXPECT_TRUE(CopyOf(ring, 10).empty());
  ring.CheckInvariants();
}

TEST(FailureRing, GivesTheNewestFirst) {
  FailureRing ring;
  for (std::uint64_t i = 0; i < 5; ++i) RecordNumbered(ring, i);
  EXPECT_EQ(ring.recorded(), 5u);
  const auto all = CopyOf(ring, 10);
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(all[i].monotonic_ns, 4 - i);
    EXPECT_EQ(all[i].sequence, 5 - i);
    EXPECT_TRUE(IsWhole(all[i]));
  }
  const auto two = CopyOf(ring, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].monotonic_ns, 3u);
  EXPECT_TRUE(CopyOf(ring, 0).empty());
}

TEST(FailureRing, KeepsTheLastOnes) {
  FailureRing ring;
  constexpr std::uint64_t kEvents = 3 * FailureRing::kCapacity + 17;
  for (std::uint64_t i = 0; i < kEvents; ++i) RecordNumbered(ring, i);
  EXPECT_EQ(ring.recorded(), kEvents);
  const auto events = CopyOf(ring, kEvents);
  ASSERT_EQ(events.size(), FailureRing::kCapacity);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].monotonic_ns, kEvents - 1 - i);
    ASSERT_TRUE(IsWhole(events[i]));
  }
  ring.CheckInvariants();
}

TEST(FailureRing, CompletesAnEventOnce) {
  FailureRing ring;
  FailureEvent event = Numbered(1);
  ring.Record(event);
  RecordNumbered(ring, 2);
  EXPECT_EQ(CopyOf(ring, 2)[1].disposition, Disposition::kPending);
  event.disposition = Disposition::kThrew;
  ring.Complete(event);
  ring.CheckInvariants();
  ASSERT_EQ(CopyOf(ring, 9).size(), 2u);
  EXPECT_EQ(CopyOf(ring, 2)[1].disposition, Disposition::kThrew);
  EXPECT_TRUE(IsWhole(CopyOf(ring, 2)[1]));
  event.disposition = Disposition::kReturnedNull;
  ring.Complete(event);
  EXPECT_EQ(CopyOf(ring, 2)[1].disposition, Disposition::kThrew);
  EXPECT_EQ(ring.recorded(), 2u);
}

TEST(FailureRing, LeavesNewerEventsAloneWhenAnOldOneIsCompleted) {
  FailureRing ring;
  FailureEvent event = Numbered(1);
  ring.Record(event);
  for (std::uint64_t i = 0; i < FailureRing::kCapacity; ++i) {
    RecordNumbered(ring, 100 + i);
  }
  event.disposition = Disposition::kThrew;
  ring.Complete(event);
  FailureEvent found;
  EXPECT_FALSE(ring.CopyOne(event.sequence, found));
  ASSERT_TRUE(ring.CopyOne(FailureRing::kCapacity + 1, found));
  EXPECT_EQ(found.monotonic_ns, 100 + FailureRing::kCapacity - 1);
  EXPECT_TRUE(IsWhole(found));
  ring.CheckInvariants();
}

// What a debugger does: it knows no type of ours.
TEST(FailureRing, CanBeReadByItsDescription) {
  FailureRing ring;
  for (std::uint64_t i = 0; i < 300; ++i) RecordNumbered(ring, i);
  const FailureRingDescriptor described = ring.Describe("1.2.3", "release");
  EXPECT_STREQ(described.magic, "hakfail");
  EXPECT_EQ(described.version, 1u);
  EXPECT_EQ(described.descriptor_bytes, sizeof(described));
  std::uint64_t recorded = 0;
  std::memcpy(&recorded, described.recorded, sizeof(recorded));
  EXPECT_EQ(recorded, 300u);
  const char* const slot =
      static_cast<const char*>(described.slots) +
      (recorded - 1) % described.capacity * described.slot_bytes;
  std::uint64_t sequence = 0;
  std::memcpy(&sequence, slot, sizeof(sequence));
  EXPECT_EQ(sequence, 4 * 299 + 2u);
  FailureEvent event;
  ASSERT_EQ(described.event_bytes, sizeof(event));
  std::memcpy(&event, slot + described.event_offset, sizeof(event));
  EXPECT_EQ(event.sequence, 300u);
  EXPECT_TRUE(IsWhole(event));
}

TEST(FailureRing, Stress) {
  constexpr std::uint64_t kWriters = 4;
  constexpr std::uint64_t kEventsPerWriter = 20000;
  FailureRing ring;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> threads;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&ring, writer] {
      for (std::uint64_t i = 0; i < kEventsPerWriter; ++i) {
        FailureEvent event = Numbered(i * kWriters + writer);
        ring.Record(event);
        event.disposition = Disposition::kThrew;
        if (i % 2 == 0) ring.Complete(event);
      }
    });
  }
  std::thread reader([&] {
    FailureEvent events[FailureRing::kCapacity];
    while (!done.load()) {
      const std::size_t count = CopyTo(ring, events, FailureRing::kCapacity);
      for (std::size_t i = 0; i < count; ++i) {
        if (!IsWhole(events[i])) ++torn;
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(ring.recorded(), kWriters * kEventsPerWriter);
  ring.CheckInvariants();

  // No slot has been left unusable.
  for (std::uint64_t i = 0; i < FailureRing::kCapacity; ++i) {
    RecordNumbered(ring, 1'000'000 + i);
  }
  const auto events = CopyOf(ring, FailureRing::kCapacity);
  ASSERT_EQ(events.size(), FailureRing::kCapacity);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].monotonic_ns,
              1'000'000 + FailureRing::kCapacity - 1 - i);
  }
}

// A thread that was in Record when another one forked does not exist in the
// child; its slot must be usable there again.
TEST(FailureRing, ChildOfAForkRecordsAgain) {
  FailureRing ring;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !done.load(); ++i) RecordNumbered(ring, i);
  });
  bool all_well = true;
  for (int round = 0; round < 50 && all_well; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ring.ChildAfterFork();
      ring.CheckInvariants();
      for (std::uint64_t i = 0; i < FailureRing::kCapacity; ++i) {
        RecordNumbered(ring, i);
      }
      FailureEvent events[FailureRing::kCapacity];
      const std::size_t count = CopyTo(ring, events, FailureRing::kCapacity);
      _exit(count == FailureRing::kCapacity && events[count - 1].sequence == 1
                ? 0
                : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    all_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  done = true;
  writer.join();
  EXPECT_TRUE(all_well);
}

// Each child of a program that never failed would pay for all of them.
TEST(FailureRing, AForksChildTouchesNoSlotThatWasNeverWritten) {
  // The largest pages there are.
  alignas(64 * 1024) static constinit FailureRing ring;
  constexpr std::size_t kBytes = sizeof(ring) - sizeof(ring) % (64 * 1024);
  // A page of zeros is in memory once it was read.
  madvise(&ring, kBytes, MADV_NOHUGEPAGE);
  ASSERT_EQ(madvise(&ring, kBytes, MADV_DONTNEED), 0);
  ring.ChildAfterFork();
  unsigned char resident[kBytes / 4096] = {};
  ASSERT_EQ(mincore(&ring, kBytes, resident), 0);
  for (const unsigned char byte : resident) EXPECT_EQ(byte & 1, 0);
}

}  // namespace
}  // namespace hakmem
