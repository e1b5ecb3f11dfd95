// Any sequence of calls of the allocator, on a kernel that refuses any of its
// own: no block overlaps another or loses its content, and every layer keeps
// its invariants.

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/options.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_workload.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "fuzz/choices.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr int kStepsPerCheck = 16;

Options ChooseOptions(ByteChoices& choices) {
  Options options;
  if (choices.Below(4) == 0) {
    options.heap_limit_bytes = (1 + choices.Below(64)) * kMiB;
  }
  if (choices.Below(4) == 0) {
    options.depot_bytes = choices.Below(1024) * kKiB;
  }
  options.decay_ms = choices.Below(2) == 0 ? 500 : choices.Below(2000);
  return options;
}

// Changes what the kernel does from now on.
void DisturbKernel(ByteChoices& choices, FakeVirtualMemory& memory) {
  constexpr int kErrors[] = {ENOMEM, EAGAIN, EPERM, EFAULT};
  switch (choices.Below(5)) {
    case 0:
      memory.RefuseNothing();
      break;
    case 1:
      memory.LimitBytes(choices.Below(256) * kMiB);
      break;
    case 2:
      memory.LimitBytes(~std::size_t{0});
      break;
    default: {
      const std::uint64_t nth = 1 + choices.Below(16);
      const int error = kErrors[choices.Below(4)];
      const Refuse refuse =
          choices.Below(4) == 0 ? Refuse::kFromThenOn : Refuse::kOnce;
      const auto kind = static_cast<VmCall>(choices.Below(5));
      memory.RefuseCall(nth, error, refuse, kind);
      break;
    }
  }
}

template <const Config& kConfig>
void Run(ByteChoices& choices) {
  TestAllocator<kConfig> test(ChooseOptions(choices));
  if (choices.Below(2) != 0) test.memory.LoseTargetOfRefusedMoves();
  TestWorkload<kConfig, SharedChoices> workload(test, SharedChoices(choices));
  for (int step = 1; !choices.empty(); ++step) {
    if (choices.Below(16) == 0) DisturbKernel(choices, test.memory);
    workload.Step();
    if (step % kStepsPerCheck == 0) {
      test.allocator->CheckInvariants();
      workload.CheckModel();
    }
  }
  test.allocator->CheckInvariants();
  test.memory.RefuseNothing();
  test.memory.LimitBytes(~std::size_t{0});
  workload.Finish();
  test.allocator->CheckInvariants();
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::ByteChoices choices(data, size);
  switch (choices.Below(4)) {
    case 0:
      hakmem::Run<hakmem::kRelease>(choices);
      break;
    case 1:
      hakmem::Run<hakmem::kTracing>(choices);
      break;
    case 2:
      hakmem::Run<hakmem::kHardened>(choices);
      break;
    default:
      hakmem::Run<hakmem::kDebug>(choices);
      break;
  }
  return 0;
}
