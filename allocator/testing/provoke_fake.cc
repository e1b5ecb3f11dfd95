// Failures that not every machine permits for real, brought about on a fake
// kernel; tools/provoke has the real ones.
//
//   provoke_fake --case=NAME --trace=FILE
//
// The allocator, the limit finder and the trace are the product's own; the
// kernel's memory calls and its files are not. FILE gets the trace's lines.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/failures/failure_trace.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/fake_proc_tree.h"
#include "allocator/platform/fake_virtual_memory.h"

ABSL_FLAG(std::string, case, "", "which failure");
ABSL_FLAG(std::string, trace, "", "the file to append the trace's lines to");

namespace hakmem {
namespace {

// The kernel's files, while Run runs.
FakeProcTree* tree = nullptr;

constinit ParsedOptions options;
constinit TraceLine trace_line;
constinit FailureRing failures;
constinit FailureReporter reporter{
    trace_line,
    [](std::size_t needed_bytes, int error_number, LimitReport& report) {
      FindLimitFrom({tree->files(), [] { return false; }}, needed_bytes,
                    error_number, report);
    }};

constexpr Host kHost = {
    .options = []() -> const HeapOptions& { return options.values; },
    .on_attach = [] {},
    .reporter = &reporter,
    .failures = &failures,
};

// A process without limits, of 100 MiB.
void LayOutProcess(absl::string_view limits, absl::string_view maps) {
  tree->Write("/proc/self/status",
              "VmSize:\t102400 kB\nVmLck:\t65536 kB\nVmData:\t81920 kB\n"
              "CapEff:\t0000000000000000\n");
  tree->Write("/proc/self/limits", std::string(limits));
  tree->Write("/proc/self/maps", std::string(maps));
  tree->Write("/proc/sys/vm/max_map_count", "65530\n");
  tree->Write("/proc/sys/vm/overcommit_memory", "0\n");
}

void LayOutCgroup() {
  tree->Write("/proc/self/mountinfo",
              "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree->Write("/proc/self/cgroup", "0::/job\n");
  tree->Write("/sys/fs/cgroup/job/memory.max", "67108864\n");
  tree->Write("/sys/fs/cgroup/job/memory.current", "67100672\n");
}

void LayOutOvercommit() {
  tree->Write("/proc/sys/vm/overcommit_memory", "2\n");
  tree->Write("/proc/meminfo",
              "MemTotal:        4194304 kB\nCommitLimit:     2097152 kB\n"
              "Committed_AS:    2000000 kB\n");
}

std::string ManyMappings() {
  std::string text;
  for (int i = 0; i < 65'531; ++i) {
    text += "7f5c3d400000-7f5c3d421000 rw-p 00000000 00:00 0 \n";
  }
  return text;
}

// Lays the files out; the errno that the kernel refuses with, or 0 for a name
// that is none.
int LayOut(absl::string_view name) {
  LayOutProcess("", "7f5c3d400000-7f5c3d421000 rw-p 00000000 00:00 0 \n");
  if (name == "cgroup") {
    LayOutCgroup();
    return ENOMEM;
  }
  if (name == "overcommit") {
    LayOutOvercommit();
    return ENOMEM;
  }
  if (name == "max_map_count") {
    LayOutProcess("", ManyMappings());
    return ENOMEM;
  }
  if (name == "rlimit_memlock") {
    LayOutProcess(
        "Max locked memory         67108864             67108864             "
        "bytes     \n",
        "");
    return EAGAIN;
  }
  // No window of a table is ever used up; a table that cannot grow looks the
  // same.
  if (name == "metadata") return ENOSPC;
  return 0;
}

int Run() {
  FakeProcTree files;
  tree = &files;
  const std::string name = absl::GetFlag(FLAGS_case);
  const std::string path = absl::GetFlag(FLAGS_trace);
  const int error_number = LayOut(name);
  if (error_number == 0 || path.empty() ||
      ApplyOption("HAKMEM_ACE_TRACE", path, options) != OptionError::kNone) {
    std::fputs("usage: provoke_fake --case=NAME --trace=FILE\n", stderr);
    return 2;
  }
  reporter.Start(options, kRelease.name);
  FakeVirtualMemory memory;
  const auto allocator =
      std::make_unique<TestedAllocator<kRelease>>(memory, kHost);
  TestedAllocator<kRelease>::Heap* self = TestedAllocator<kRelease>::NoHeap();
  const bool from_the_start = name == "metadata";
  if (!from_the_start && allocator->Allocate(self, kMiB) == nullptr) return 1;
  if (error_number == ENOMEM) {
    memory.LimitBytes(memory.mapped_bytes() + 64 * kMiB);
  } else {
    memory.RefuseCall(1, error_number, FakeVirtualMemory::Refuse::kFromThenOn);
  }
  const bool failed = allocator->Allocate(self, kGiB) == nullptr;
  memory.RefuseNothing();
  memory.LimitBytes(kNoLimit);
  const bool well = allocator->Allocate(self, kGiB) != nullptr;
  allocator->CheckInvariants();
  return failed && well ? 0 : 1;
}

}  // namespace
}  // namespace hakmem

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return hakmem::Run();
}
