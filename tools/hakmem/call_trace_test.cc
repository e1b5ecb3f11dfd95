// The library's CallTrace, read back by the reader of `hakmem trace`.

#include "allocator/call_trace/call_trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/line_end.h"
#include "allocator/base/units.h"
#include "allocator/call_trace/call_trace_format.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"

namespace hakmem {
namespace {

using tools::CallEvent;

constexpr std::uint8_t kMalloc =
    call_trace::kAllocate + static_cast<std::uint8_t>(Call::kMalloc);

// The host's functions have no argument.
FakeVirtualMemory* memory = nullptr;
std::atomic<int> attached = 0;
std::atomic<int> writers_wanted = 0;

Address Window() {
  const Address begin = memory->RegionRange().begin;
  Address window = (begin / kSuperSlabBytes + 1) * kSuperSlabBytes;
  while (memory->IsTaken(window, CallTrace::kWindowBytes)) {
    window += kSuperSlabBytes;
  }
  return window;
}

constexpr CallTraceHost kHost = {.window = &Window,
                                 .on_attach = [] { ++attached; },
                                 .start_writer = [] { ++writers_wanted; }};

constexpr CallTraceFacts kFacts = {
    .program = "program",
    .version = "1.2.3",
    .variant = "tracing",
    .class_bytes = [](unsigned index) -> std::uint32_t { return 16U << index; },
    .class_count = 3,
    .max_tiny_bytes = 32,
    .max_pool_bytes = 64,
    .max_span_bytes = 1 << 20,
    .unit_bytes = 4096,
    .page_bytes = 4096,
};

struct ReadTrace {
  std::string bytes;
  tools::TraceBlocks blocks;
  tools::TraceStacks stacks;
  std::vector<CallEvent> events;
};

ReadTrace Read(const std::string& path) {
  ReadTrace trace;
  std::ifstream in(path, std::ios::binary);
  trace.bytes.assign(std::istreambuf_iterator<char>(in), {});
  absl::StatusOr<tools::TraceBlocks> blocks = tools::ReadTraceBlocks(
      {reinterpret_cast<const std::uint8_t*>(trace.bytes.data()),
       trace.bytes.size()});
  EXPECT_TRUE(blocks.ok()) << blocks.status();
  if (blocks.ok()) trace.blocks = *std::move(blocks);
  tools::ReadTraceEvents(
      trace.blocks, trace.stacks,
      [&](const CallEvent& event) { trace.events.push_back(event); });
  EXPECT_EQ(trace.blocks.damage.bytes(), 0U);
  return trace;
}

class CallTraceTest : public testing::Test {
 protected:
  CallTraceTest() {
    memory = &memory_;
    attached = 0;
    writers_wanted = 0;
    std::remove(path_.c_str());
  }

  void Start(std::uint64_t sample = 1, bool stacks = false) {
    trace_.Enable(path_.c_str(), sample, stacks);
    trace_.Open(kFacts);
  }

  bool Free(TraceThread& self, std::uint64_t address) {
    trace_.Count(self);
    return trace_.Record(self,
                         {.operation = call_trace::kFree, .address = address});
  }

  FakeVirtualMemory memory_;
  CallTrace trace_{memory_, kHost};
  TraceThread self_;
  const std::string path_ = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->name(), ".trace");
};

TEST_F(CallTraceTest, OffUntilEnabled) {
  EXPECT_FALSE(trace_.on());
  trace_.Open(kFacts);
  EXPECT_FALSE(Free(self_, 16));
  trace_.Finish();
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
  EXPECT_EQ(memory_.mapped_bytes(), 0U);
}

// Of each kind of event one or two.
class CallTraceContentTest : public CallTraceTest {
 protected:
  void Make() {
    Start(1, /*stacks=*/true);
    const std::uintptr_t stack[] = {0x1234, 0x5678, 0x9abc};
    trace_.Count(self_);
    trace_.Record(self_, {.operation = kMalloc,
                          .address = 0x10000,
                          .size_bytes = 100,
                          .alignment_bytes = 16,
                          .stack = stack});
    trace_.Record(self_, {.operation = kMalloc,
                          .address = 0x20000,
                          .size_bytes = 200,
                          .alignment_bytes = 4096,
                          .stack = stack});
    trace_.Record(self_,
                  {.operation = call_trace::kReallocFrom, .address = 0x10000});
    trace_.Record(self_,
                  {.operation = call_trace::kAllocate +
                                static_cast<std::uint8_t>(Call::kRealloc),
                   .linked = true,
                   .address = 0x30000,
                   .size_bytes = 300});
    trace_.Record(self_, {.operation = call_trace::kFailure,
                          .size_bytes = ~std::uint64_t{0},
                          .reason = FailureReason::kThreshold,
                          .detail = FailureDetail::kSize,
                          .disposition = Disposition::kThrew,
                          .call = Call::kNew,
                          .attempts = 7});
    Free(self_, 0x30000);
    trace_.Detach(self_);
    trace_.Finish();
    EXPECT_FALSE(trace_.on());
  }
};

TEST_F(CallTraceContentTest, TheProcess) {
  Make();
  const ReadTrace trace = Read(path_);
  ASSERT_TRUE(trace.blocks.start.has_value());
  const tools::TraceFacts& facts = *trace.blocks.start;
  EXPECT_EQ(facts.program, "program");
  EXPECT_EQ(facts.version, "1.2.3");
  EXPECT_EQ(facts.variant, "tracing");
  EXPECT_EQ(facts.process_id, static_cast<std::uint64_t>(getpid()));
  EXPECT_TRUE(facts.has_stacks);
  EXPECT_EQ(facts.class_bytes, (std::vector<std::uint32_t>{16, 32, 64}));
  EXPECT_EQ(facts.calls.at(static_cast<std::size_t>(Call::kMalloc)), "malloc");
  EXPECT_EQ(facts.details.size(), kFailureDetailCount);
  ASSERT_TRUE(trace.blocks.end.has_value());
  EXPECT_EQ(trace.blocks.end->calls, 2U);
  EXPECT_EQ(trace.blocks.end->recorded, 6U);
  EXPECT_EQ(trace.blocks.end->dropped, 0U);
  EXPECT_EQ(trace.blocks.end->signal, 0U);
  EXPECT_EQ(trace.blocks.threads.at(1).recorded, 6U);
}

TEST_F(CallTraceContentTest, TheEvents) {
  Make();
  const ReadTrace trace = Read(path_);
  ASSERT_EQ(trace.events.size(), 6U);
  const CallEvent& first = trace.events[0];
  EXPECT_EQ(first.kind, CallEvent::Kind::kAllocate);
  EXPECT_EQ(first.address, 0x10000U);
  EXPECT_EQ(first.size, 100U);
  EXPECT_EQ(first.alignment, 0U);
  EXPECT_EQ(trace.stacks.At(first.stack),
            (std::vector<std::uint64_t>{0x1234, 0x5678, 0x9abc}));
  EXPECT_EQ(trace.events[1].alignment, 4096U);
  EXPECT_EQ(trace.events[1].stack, first.stack);
  EXPECT_EQ(trace.events[2].kind, CallEvent::Kind::kReallocFrom);
  EXPECT_TRUE(trace.events[3].linked);
  EXPECT_EQ(trace.events[3].address, 0x30000U);
  EXPECT_EQ(trace.events[3].stack, tools::kNoStack);
  const CallEvent& failure = trace.events[4];
  const tools::TraceFacts& facts = trace.blocks.facts();
  EXPECT_EQ(failure.kind, CallEvent::Kind::kFailure);
  EXPECT_EQ(failure.size, ~std::uint64_t{0});
  EXPECT_EQ(facts.calls.at(failure.call), "operator new");
  EXPECT_EQ(facts.reasons.at(failure.reason), "Threshold");
  EXPECT_EQ(facts.details.at(failure.detail), "size");
  EXPECT_EQ(facts.dispositions.at(failure.disposition), "threw");
  EXPECT_EQ(failure.attempts, 7U);
  EXPECT_EQ(trace.events[5].kind, CallEvent::Kind::kFree);
}

TEST_F(CallTraceContentTest, TheModules) {
  Make();
  const ReadTrace trace = Read(path_);
  const auto here = reinterpret_cast<std::uintptr_t>(&Read);
  const auto after = trace.blocks.modules.upper_bound(here);
  ASSERT_NE(after, trace.blocks.modules.begin());
  const tools::TraceModule& module = std::prev(after)->second;
  EXPECT_LT(here - module.begin, module.bytes);
  EXPECT_NE(module.base, 0U);
}

TEST_F(CallTraceTest, DropsAreCountedExactly) {
  // Without a file nothing is drained.
  trace_.Enable(path_.c_str(), 1, false);
  constexpr std::uint64_t kTried = 500'000;
  std::uint64_t recorded = 0;
  for (std::uint64_t i = 1; i <= kTried; ++i) {
    if (Free(self_, 16 * i)) ++recorded;
  }
  ASSERT_GT(recorded, 1000U);
  ASSERT_LT(recorded, kTried);
  trace_.Open(kFacts);
  // Now its thread writes a full ring itself.
  for (std::uint64_t i = 1; i <= kTried; ++i) EXPECT_TRUE(Free(self_, 16 * i));
  trace_.Finish();
  const ReadTrace trace = Read(path_);
  EXPECT_EQ(trace.events.size(), recorded + kTried);
  EXPECT_EQ(trace.blocks.end->calls, 2 * kTried);
  EXPECT_EQ(trace.blocks.end->recorded, recorded + kTried);
  EXPECT_EQ(trace.blocks.end->dropped, kTried - recorded);
  EXPECT_EQ(trace.blocks.threads.at(1).dropped, kTried - recorded);
}

TEST_F(CallTraceTest, ASampleHasAllEventsOfAnAddressOrNone) {
  constexpr std::uint64_t kSample = 100;
  Start(kSample);
  std::uint64_t sampled = 0;
  constexpr std::uint64_t kAddresses = 1'000'000;
  for (std::uint64_t i = 0; i < kAddresses; ++i) {
    const std::uintptr_t address = 0x300000000000 + 48 * i;
    EXPECT_EQ(trace_.Samples(address), trace_.Samples(address));
    sampled += trace_.Samples(address) ? 1 : 0;
  }
  EXPECT_GT(sampled, kAddresses / kSample * 9 / 10);
  EXPECT_LT(sampled, kAddresses / kSample * 11 / 10);
  trace_.Finish();
  EXPECT_EQ(Read(path_).blocks.start->sample, kSample);
}

TEST_F(CallTraceTest, ThreadsHaveTheirOwnStreams) {
  Start();
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEvents = 100'000;
  std::thread writer([this] { trace_.RunWriter(); });
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      TraceThread self;
      for (std::uint64_t j = 1; j <= kEvents; ++j) {
        Free(self, (i << 32) + 16 * j);
      }
      trace_.Detach(self);
    });
  }
  for (std::thread& thread : threads) thread.join();
  trace_.Finish();
  writer.join();
  const ReadTrace trace = Read(path_);
  EXPECT_EQ(trace.blocks.end->calls, kThreads * kEvents);
  EXPECT_EQ(trace.blocks.end->recorded, trace.events.size());
  EXPECT_EQ(trace.events.size() + trace.blocks.end->dropped,
            kThreads * kEvents);
  std::map<std::uint64_t, std::uint64_t> last;  // address, by thread
  std::uint64_t time_ns = 0;
  for (const CallEvent& event : trace.events) {
    EXPECT_GT(event.address, last[event.thread]);
    EXPECT_TRUE(last[event.thread] == 0 ||
                last[event.thread] >> 32 == event.address >> 32);
    last[event.thread] = event.address;
    EXPECT_GE(event.time_ns, time_ns);
    time_ns = event.time_ns;
  }
  EXPECT_EQ(last.size(), kThreads);
}

TEST_F(CallTraceTest, ARingIsUsedAgainWhenItsThreadIsGone) {
  Start();
  for (int i = 0; i < 10; ++i) {
    std::thread([this] {
      TraceThread self;
      Free(self, 16);
      trace_.Detach(self);
    }).join();
    trace_.Drain();
  }
  const std::size_t mapped = memory_.mapped_bytes();
  EXPECT_EQ(mapped, CallTrace::kBufferStride + 2 * CallTrace::kRingStride);
  EXPECT_EQ(attached, 10);
  trace_.Finish();
  const ReadTrace trace = Read(path_);
  EXPECT_EQ(trace.events.size(), 10U);
  EXPECT_EQ(trace.blocks.events.size(), 10U);  // a number each
}

TEST_F(CallTraceTest, ThreadsWithoutARingShareOne) {
  Start();
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  TraceThread other;
  EXPECT_TRUE(Free(self_, 16));
  EXPECT_TRUE(Free(other, 32));
  trace_.Detach(self_);
  // After the thread's exit, too.
  EXPECT_TRUE(Free(self_, 48));
  trace_.Finish();
  const ReadTrace trace = Read(path_);
  ASSERT_EQ(trace.events.size(), 3U);
  for (const CallEvent& event : trace.events) {
    EXPECT_EQ(event.thread, call_trace::kSharedThread);
  }
  EXPECT_EQ(trace.blocks.threads.at(0).name, "other threads");
  EXPECT_EQ(attached, 0);
}

TEST_F(CallTraceTest, WithoutMemoryNothingIsTraced) {
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  testing::internal::CaptureStderr();
  trace_.Enable(path_.c_str(), 1, false);
  EXPECT_FALSE(Free(self_, 16));
  trace_.Open(kFacts);
  EXPECT_FALSE(trace_.on());
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      absl::StrCat("hakmem: warning: HAKMEM_TRACE: cannot write ", path_,
                   ": Cannot allocate memory; this process is not traced any "
                   "further",
                   LineEnd().text()));
}

TEST_F(CallTraceTest, AFileThatCannotBeOpenedIsSaidOnce) {
  testing::internal::CaptureStderr();
  trace_.Enable("/nowhere/at/all.trace", 1, false);
  trace_.Open(kFacts);
  EXPECT_FALSE(trace_.on());
  EXPECT_FALSE(Free(self_, 16));
  trace_.Drain();
  trace_.Finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "hakmem: warning: HAKMEM_TRACE: cannot write "
            "/nowhere/at/all.trace: No such file or directory; this process is "
            "not traced any "
            "further" +
                std::string(LineEnd().text()));
}

TEST_F(CallTraceTest, AFullDiskIsSaidOnce) {
  testing::internal::CaptureStderr();
  trace_.Enable("/dev/full", 1, false);
  trace_.Open(kFacts);
  Free(self_, 16);
  trace_.Drain();
  EXPECT_FALSE(trace_.on());
  trace_.Finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "hakmem: warning: HAKMEM_TRACE: cannot write /dev/full: No space "
            "left on device; "
            "this process is not traced any further" +
                std::string(LineEnd().text()));
}

TEST_F(CallTraceTest, TwoProcessesDoNotShareAFile) {
  Start();
  Free(self_, 16);
  trace_.Drain();
  CallTrace second(memory_, kHost);
  testing::internal::CaptureStderr();
  second.Enable(path_.c_str(), 1, false);
  second.Open(kFacts);
  EXPECT_FALSE(second.on());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("another process"),
            std::string::npos);
  trace_.Finish();
  EXPECT_EQ(Read(path_).events.size(), 1U);
}

TEST_F(CallTraceTest, TheWriterIsWantedOnceThereIsSomethingToWrite) {
  Start();
  for (std::uint64_t i = 1; i <= 63; ++i) Free(self_, 16 * i);
  EXPECT_EQ(writers_wanted, 0);
  for (std::uint64_t i = 1; i <= 63; ++i) Free(self_, 16 * i);
  EXPECT_EQ(writers_wanted, 1);
}

TEST_F(CallTraceTest, AProgramThatClosesAllFilesIsTracedOn) {
  Start();
  Free(self_, 16);
  trace_.Drain();
  std::vector<int> reused;
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat file;
    struct stat open_file;
    ASSERT_EQ(stat(path_.c_str(), &file), 0);
    if (fstat(fd, &open_file) != 0 || file.st_ino != open_file.st_ino) continue;
    // As a daemon does, and then opens a file of its own.
    const int other = fileno(std::tmpfile());
    ASSERT_EQ(dup2(other, fd), fd);
    reused.push_back(fd);
  }
  ASSERT_EQ(reused.size(), 1U);
  Free(self_, 32);
  trace_.Finish();
  EXPECT_EQ(lseek(reused[0], 0, SEEK_END), 0);
  EXPECT_EQ(Read(path_).events.size(), 2U);
}

// Runs `body` in a forked child, which must succeed.
template <typename Body>
void InChild(CallTrace& trace, TraceThread& self, Body body) {
  trace.PrepareFork();
  const pid_t child = fork();
  if (child == 0) {
    trace.ChildAfterFork(self);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  trace.ParentAfterFork();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(CallTraceTest, AForkedChildOfOneFileIsNotTraced) {
  Start();
  Free(self_, 16);
  InChild(trace_, self_, [this] {
    EXPECT_FALSE(trace_.on());
    EXPECT_FALSE(Free(self_, 32));
    trace_.Finish();
  });
  Free(self_, 48);
  trace_.Finish();
  EXPECT_EQ(Read(path_).events.size(), 2U);
}

TEST_F(CallTraceTest, AForkedChildHasItsOwnFile) {
  const std::string pattern = path_ + ".%p";
  trace_.Enable(pattern.c_str(), 1, false);
  trace_.Open(kFacts);
  Free(self_, 16);
  int child = 0;
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  InChild(trace_, self_, [&] {
    // The parent's event is not the child's.
    EXPECT_TRUE(Free(self_, 32));
    trace_.Finish();
    const int id = getpid();
    EXPECT_EQ(write(pipes[1], &id, sizeof(id)), ssize_t{sizeof(id)});
  });
  ASSERT_EQ(read(pipes[0], &child, sizeof(child)), ssize_t{sizeof(child)});
  Free(self_, 48);
  trace_.Finish();
  const ReadTrace parent = Read(absl::StrCat(path_, ".", getpid()));
  EXPECT_EQ(parent.events.size(), 2U);
  const ReadTrace forked = Read(absl::StrCat(path_, ".", child));
  ASSERT_EQ(forked.events.size(), 1U);
  EXPECT_EQ(forked.events[0].address, 32U);
  EXPECT_EQ(forked.blocks.start->process_id, static_cast<std::uint64_t>(child));
}

TEST_F(CallTraceTest, ASignalEndsTheFile) {
  Start();
  Free(self_, 16);
  trace_.FinishOnSignal(11);
  const ReadTrace trace = Read(path_);
  EXPECT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.blocks.end->signal, 11U);
}

}  // namespace
}  // namespace hakmem
