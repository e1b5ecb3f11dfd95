// Several threads at once: allocations, local and remote frees, exits, threads
// that go on without a heap, adoption, purges and forks, interleaved load by
// load as the input says; one block that a thread frees while another one
// reallocates it, of which the second must be reported, and the heap be whole;
// and one block freed by two threads at once, which must be reported.
//
// Header: 0 depot bytes, 1 decay, 2 heap limit, 3 heap profile, 4 HAKMEM_CLEAR.
// Records: the operations of `Do`, for the thread who % 4, and where types are
// separate with the token of the next four bits of `who`; they are collected,
// and carried out together by all threads when a record has the high bit of
// `who` set, or twelve are collected. That record's a and b are the schedule,
// too. A record with op % 32 == 30 makes one thread free what another
// reallocates, with HAKMEM_ON_MISUSE=log. One with op % 32 == 31 makes two
// threads free the same block, and ends the run.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/heap_check.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/reports/misuse_policy.h"
#include "fuzz/baton.h"
#include "fuzz/misuse_trap.h"
#include "fuzz/records.h"
#include "fuzz/uninterrupted_memory.h"

namespace hakmem {
namespace {

constexpr std::size_t kMostLiveBytes = 8 * kMiB;
constexpr std::size_t kMostTogether = 12;
constexpr int kMostForks = 1;

template <const Config& kConfig>
class ThreadsRun {
 public:
  explicit ThreadsRun(const Records& input);
  ~ThreadsRun() { test_listener = nullptr; }

  // False: the run is over.
  bool Add(const Record& record);
  void Together(std::uint32_t schedule);
  void Finish();

 private:
  using Heap = typename TestedAllocator<kConfig>::Heap;

  Heap*& self(unsigned lane) { return threads_[lane % Baton::kLanes]; }
  // The allocator's part of an operation: here others may go on.
  template <typename F>
  static auto Call(F call) {
    const Baton::Inside inside;
    return call();
  }
  static std::size_t Size(std::uint32_t number) {
    return SizeOf(number) % (300 * kKiB);
  }
  void Do(const Record& record);
  void Allocate(unsigned lane, std::size_t size, std::uint64_t token = 0);
  void AllocateZeroed(unsigned lane, std::size_t size);
  void Add(unsigned lane, void* block, std::size_t size);
  void Free(unsigned lane, std::size_t number);
  void Reallocate(const Record& record);
  void EndThread(unsigned lane, bool replaced);
  void Fork(unsigned lane);
  [[noreturn]] void BeChild(unsigned lane);
  void LookOrFork(const Record& record);
  void ReallocateAtOnce(const Record& record);
  void FreeAtOnce(const Record& record);

  FakeVirtualMemory fake_;
  UninterruptedMemory memory_{fake_};
  std::unique_ptr<TestedAllocator<kConfig>> allocator_;
  std::array<Heap*, Baton::kLanes> threads_;
  ModelHeap model_;
  std::vector<Record> collected_;
  HeapCheckCursor place_;
  int forks_ = 0;
  bool may_refuse_ = false;
};

template <const Config& kConfig>
ThreadsRun<kConfig>::ThreadsRun(const Records& input) {
  test_options = HeapOptions();
  if (input.header(0) % 4 == 1) {
    test_options.depot_bytes = input.header(0) / 4U * 16 * kKiB;
  }
  test_options.decay_ms = 1U + input.header(1);
  may_refuse_ = input.header(2) % 4 == 1;
  if (may_refuse_) {
    test_options.heap_limit_bytes = (4 + input.header(2) / 4U % 16) * kMiB;
  }
  if (input.header(3) % 4 == 1) {
    test_options.profile_bytes = 1 + input.header(3) / 4U * kKiB;
    test_options.unwind = static_cast<std::uint64_t>(Unwinding::kNone);
  }
  // 16 counts as 256.
  if (input.header(4) % 2 != 0) test_options.clear_bytes = 16;
  std::construct_at(&test_reporter, test_line, &FindTestLimit);
  std::construct_at(&test_failures);
  test_handler = nullptr;
  test_listener = nullptr;
  fake_.SetNowMs(1'000'000);
  threads_.fill(TestedAllocator<kConfig>::NoHeap());
  allocator_ = std::make_unique<TestedAllocator<kConfig>>(memory_, kTestHost);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Allocate(unsigned lane, std::size_t size,
                                   std::uint64_t token) {
  if (model_.live_bytes() > kMostLiveBytes) return;
  // Apart, so that old schedules are what they were.
  void* block =
      token == 0 ? Call([&] { return allocator_->Allocate(self(lane), size); })
                 : Call([&] {
                     return allocator_->AllocateWithToken(
                         self(lane), token, kMinAlignmentBytes, size);
                   });
  Add(lane, block, size);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::AllocateZeroed(unsigned lane, std::size_t size) {
  if (model_.live_bytes() > kMostLiveBytes) return;
  void* block =
      Call([&] { return allocator_->AllocateZeroed(self(lane), 1, size); });
  if (block != nullptr) ModelHeap::CheckZero(block, size);
  Add(lane, block, size);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Add(unsigned lane, void* block, std::size_t size) {
  HAK_CHECK(block != nullptr || may_refuse_);
  if (block == nullptr) return;
  model_.Add(block, size, kMinAlignmentBytes,
             allocator_->UsableSize(self(lane), block));
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Free(unsigned lane, std::size_t number) {
  if (model_.empty()) return;
  void* block = model_.Pick(number);
  model_.Remove(block);
  Call([&] { allocator_->Free(self(lane), block); });
}

// Meanwhile the block is nobody else's, so its first bytes stand for it.
template <const Config& kConfig>
void ThreadsRun<kConfig>::Reallocate(const Record& record) {
  if (model_.empty()) return;
  void* block = model_.Pick(record.a);
  const std::size_t new_size = std::max<std::size_t>(Size(record.b), 1);
  const std::size_t old_size = model_.At(block).size;
  const std::size_t kept = std::min({old_size, new_size, std::size_t{32}});
  model_.Remove(block);
  std::array<char, 32> content;
  std::memcpy(content.data(), block, kept);
  void* moved = Call([&] {
    return allocator_->Reallocate(self(record.who), block, new_size);
  });
  HAK_CHECK(moved != nullptr || may_refuse_);
  void* const now = moved != nullptr ? moved : block;
  HAK_CHECK_EQ(std::memcmp(content.data(), now, kept), 0);
  Add(record.who, now, moved != nullptr ? new_size : old_size);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::EndThread(unsigned lane, bool replaced) {
  Call([&] { allocator_->Detach(self(lane)); });
  if (replaced) self(lane) = TestedAllocator<kConfig>::NoHeap();
}

// All that is known to be live is intact, and can be freed; and new threads can
// do what the parent's do, when the heaps that they may get are whole again.
template <const Config& kConfig>
void ThreadsRun<kConfig>::BeChild(unsigned lane) {
  Baton::BecomeOnly();
  allocator_->ChildAfterFork(self(lane));
  for (unsigned other = 0; other < Baton::kLanes; ++other) {
    if (other != lane) self(other) = TestedAllocator<kConfig>::NoHeap();
  }
  allocator_->CheckInvariants();
  HAK_CHECK_EQ(allocator_->CheckHeap(self(lane)), 0U);
  model_.CheckAll();
  for (const Record& record : collected_) Do(record);
  // Then its thread goes home.
  fake_.AdvanceMs(2000);
  while (!model_.empty()) Free(lane, 0);
  Allocate(lane, 100);
  HAK_CHECK_EQ(allocator_->CheckHeap(self(lane)), 0U);
  allocator_->upkeep().Purge(self(lane));
  allocator_->CheckInvariants();
  _exit(0);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Fork(unsigned lane) {
  if (++forks_ > kMostForks) return;
  Call([&] { allocator_->PrepareFork(); });
  const pid_t child = fork();
  if (child == 0) BeChild(lane);
  Call([&] { allocator_->ParentAfterFork(); });
  HAK_CHECK(child > 0);
  int status = 0;
  // libFuzzer has an alarm.
  HAK_CHECK_EQ(TEMP_FAILURE_RETRY(waitpid(child, &status, 0)), child);
  HAK_CHECK_EQ(status, 0);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Do(const Record& record) {
  const unsigned lane = record.who % Baton::kLanes;
  const std::uint64_t token = TokenOf(record.who / Baton::kLanes);
  switch (record.op % 16) {
    case 0:
    case 1:
    case 2:
      Allocate(lane, Size(record.b), token);
      break;
    case 3:
      for (unsigned i = 0; i < record.a % 96U; ++i) {
        Allocate(lane, record.b % 1024, token);
      }
      break;
    case 4:
    case 5:
    case 6:
      Free(lane, record.a);
      break;
    case 7:
    case 8:
      for (unsigned i = 0; i < record.b % 96; ++i) Free(lane, record.a + i);
      break;
    case 9:
      Reallocate(record);
      break;
    case 10:
    case 11:
      EndThread(lane, record.op % 16 == 10 || record.a % 8 != 0);
      break;
    case 12:
      Call([&] { allocator_->upkeep().Purge(self(lane)); });
      break;
    case 13:
      fake_.AdvanceMs(record.a % 1000);
      Call([&] { allocator_->upkeep().Maintain(); });
      break;
    case 14:
      LookOrFork(record);
      break;
    default:
      Call([&] { allocator_->upkeep().Snapshot(); });
      break;
  }
}

// Looks judge no block that another thread is about to change, however long it
// stands still meanwhile (HD3).
template <const Config& kConfig>
void ThreadsRun<kConfig>::LookOrFork(const Record& record) {
  const unsigned lane = record.who % Baton::kLanes;
  switch (record.a % 4) {
    case 0:
      Fork(lane);
      break;
    case 1:
      HAK_CHECK_EQ(Call([&] { return allocator_->CheckHeap(self(lane)); }), 0U);
      break;
    case 2:
      HAK_CHECK_EQ(
          Call([&] { return allocator_->CheckBlocks(nullptr, &place_); }), 0U);
      break;
    default:
      AllocateZeroed(lane, Size(record.b));
      break;
  }
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Together(std::uint32_t schedule) {
  std::array<Baton::Task, Baton::kLanes> tasks;
  for (unsigned lane = 0; lane < Baton::kLanes; ++lane) {
    tasks[lane] = [this, lane] {
      for (const Record& record : collected_) {
        if (record.who % Baton::kLanes == lane) Do(record);
      }
    };
  }
  Baton::Run(tasks, schedule);
  collected_.clear();
  allocator_->CheckInvariants();
  model_.CheckAll();
}

template <const Config& kConfig>
bool ThreadsRun<kConfig>::Add(const Record& record) {
  const std::uint32_t schedule = record.b ^ std::uint32_t{record.a} << 16;
  if (record.op % 32 == 30) {
    Together(schedule);
    if (!model_.empty()) ReallocateAtOnce(record);
    return true;
  }
  if (record.op % 32 == 31 && !model_.empty()) {
    if (!collected_.empty()) Together(schedule);
    if (model_.empty()) return true;
    FreeAtOnce(record);
    return false;
  }
  collected_.push_back(record);
  if (record.who >= 128 || collected_.size() == kMostTogether) {
    Together(schedule);
  }
  return true;
}

// A free and a realloc of one block at the same moment. Without a misuse the
// realloc came first and left the block where it was; else the second of the
// two was reported, and what the realloc returned is a block.
template <const Config& kConfig>
void ThreadsRun<kConfig>::ReallocateAtOnce(const Record& record) {
  void* block = model_.Pick(record.a);
  const unsigned freeing = record.who % Baton::kLanes;
  const unsigned other = (freeing + 1 + record.who / 4 % 3) % Baton::kLanes;
  const std::size_t new_size = std::max<std::size_t>(Size(record.b), 1);
  model_.Remove(block);
  static MisuseTrap traps[Baton::kLanes];
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t before = MisuseCount();
  void* moved = nullptr;
  std::array<Baton::Task, Baton::kLanes> tasks;
  // A report is written, and goes on: the traps are there to hide its text.
  tasks[freeing] = [&] {
    const Baton::Inside inside;
    traps[freeing].Catch([&] { allocator_->Free(self(freeing), block); });
  };
  tasks[other] = [&] {
    const Baton::Inside inside;
    traps[other].Catch(
        [&] { moved = allocator_->Reallocate(self(other), block, new_size); });
  };
  Baton::Run(tasks, record.b);
  // Some are found when the block leaves its outbox, which may still be.
  for (const unsigned lane : {freeing, other}) {
    traps[lane].Catch([&] { allocator_->upkeep().Purge(self(lane)); });
  }
  SetOnMisuse(OnMisuse::kAbort);
  const std::uint64_t misuses = MisuseCount() - before;
  HAK_CHECK_LE(misuses, 1U);
  if (misuses == 0) {
    HAK_CHECK(moved == block || (moved == nullptr && may_refuse_));
  } else if (moved != nullptr) {
    model_.Add(moved, new_size, kMinAlignmentBytes,
               allocator_->UsableSize(self(other), moved));
  }
  allocator_->CheckInvariants();
  model_.CheckAll();
}

// Two threads free one block at the same moment: reported at once, or at the
// latest when all outboxes have been emptied. Nothing is said of the heap
// after that.
template <const Config& kConfig>
void ThreadsRun<kConfig>::FreeAtOnce(const Record& record) {
  void* block = model_.Pick(record.a);
  const unsigned first = record.who % Baton::kLanes;
  const unsigned second = (first + 1 + record.who / 4 % 3) % Baton::kLanes;
  static MisuseTrap traps[Baton::kLanes];
  bool reported = false;
  const auto catch_in = [&](unsigned lane, auto call) {
    const std::string_view report = traps[lane].Catch(call);
    if (report.empty()) return;
    HAK_CHECK(report.starts_with("hakmem: fatal: "));
    reported = true;
    Baton::GiveUp();
  };
  std::array<Baton::Task, Baton::kLanes> tasks;
  for (const unsigned lane : {first, second}) {
    tasks[lane] = [&, lane] {
      // The call may end without leaving its frames; so they have none of it.
      const Baton::Inside inside;
      catch_in(lane, [&] { allocator_->Free(self(lane), block); });
    };
  }
  Baton::Run(tasks, record.b);
  for (unsigned lane = 0; lane < Baton::kLanes && !reported; ++lane) {
    catch_in(lane, [&] { allocator_->Detach(self(lane)); });
  }
  Heap* last = TestedAllocator<kConfig>::NoHeap();
  if (!reported) catch_in(0, [&] { allocator_->upkeep().Purge(last); });
  HAK_CHECK(reported);
}

template <const Config& kConfig>
void ThreadsRun<kConfig>::Finish() {
  if (!collected_.empty()) Together(0);
  for (unsigned i = 0; !model_.empty(); ++i) Free(i, i);
  for (Heap*& thread : threads_) allocator_->Detach(thread);
  Heap* last = TestedAllocator<kConfig>::NoHeap();
  // Before what was freed is given back.
  HAK_CHECK_EQ(allocator_->CheckHeap(last), 0U);
  allocator_->upkeep().Purge(last);
  HAK_CHECK_EQ(allocator_->upkeep().Snapshot().granted_bytes, 0U);
  allocator_->CheckInvariants();
}

template <const Config& kConfig>
void Run(Records input) {
  ThreadsRun<kConfig> run(input);
  Record record;
  while (input.Next(record)) {
    if (!run.Add(record)) return;
  }
  run.Finish();
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Run<hakmem::HAKMEM_FUZZ_VARIANT>(hakmem::Records(data, size));
  return 0;
}
