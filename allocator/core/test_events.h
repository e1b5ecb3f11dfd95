// A test of failure events, on an allocator on a fake kernel.
//
// Owns: the allocator under test and the events it has made. Called by: core's
// tests.
// Thread-safety: one thread.
#ifndef HAKMEM_ALLOCATOR_CORE_TEST_EVENTS_H_
#define HAKMEM_ALLOCATOR_CORE_TEST_EVENTS_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {

template <typename V>
class AllocatorEventsTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;
  static constexpr bool kDetours = V::kConfig.report_detours;

  AllocatorEventsTest() { Start(HeapOptions()); }
  ~AllocatorEventsTest() override {
    test_->allocator->CheckInvariants();
    test_listener = nullptr;
    test_handler = nullptr;
  }

  void Start(const HeapOptions& options) {
    test_ = std::make_unique<Test>(options);
    events_.clear();
    test_listener = [this](const FailureEvent& event) {
      events_.push_back(event);
    };
  }
  TestedAllocator<V::kConfig>& allocator() { return *test_->allocator; }
  typename Test::Heap*& self() { return test_->self; }
  FakeVirtualMemory& memory() { return test_->memory; }
  void RefuseAll(int error_number) {
    memory().RefuseCall(1, error_number,
                        FakeVirtualMemory::Refuse::kFromThenOn);
  }

  // There has been exactly one event since the last time, and the ring agrees.
  FailureEvent TakeEvent() {
    EXPECT_EQ(events_.size(), 1u);
    if (events_.empty()) return {};
    const FailureEvent event = events_.back();
    const FailureEvent newest = Newest();
    EXPECT_EQ(std::memcmp(&event, &newest, sizeof(event)), 0);
    EXPECT_EQ(event.sequence, ++taken_);
    EXPECT_EQ(test_->failures(), taken_);
    events_.clear();
    return event;
  }
  void ExpectNoEvent() { EXPECT_TRUE(events_.empty()); }

  FailureEvent Newest() const { return test_->LastFailure(); }

  FailureEvent ExpectEvent(FailureReason reason, FailureDetail detail,
                           Disposition disposition) {
    const FailureEvent event = TakeEvent();
    EXPECT_STREQ(FailureReasonName(event.reason), FailureReasonName(reason));
    EXPECT_STREQ(FailureDetailName(event.detail), FailureDetailName(detail));
    EXPECT_STREQ(DispositionName(event.disposition),
                 DispositionName(disposition));
    return event;
  }

  std::unique_ptr<Test> test_;
  std::vector<FailureEvent> events_;
  std::uint64_t taken_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_TEST_EVENTS_H_
