// Any text as the kernel's files about limits: whatever they say, the search
// ends, and names a limit only when what it read of it says that it refuses
// the call.
//
// Byte 0 chooses the errno, the next 8 are what the call needed; the rest is
// the files of kFiles, in this order, with a byte 1 between two of them. An
// empty one does not exist.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "allocator/base/check.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/failures/limit_report.h"
#include "allocator/platform/fake_proc_tree.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {
namespace {

constexpr const char* kFiles[] = {
    "/proc/self/status",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/overcommit_memory",
    "/proc/meminfo",
    "/proc/sys/vm/admin_reserve_kbytes",
    "/proc/sys/vm/user_reserve_kbytes",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/sys/fs/cgroup/a/memory.max",
    "/sys/fs/cgroup/a/memory.current",
    "/sys/fs/cgroup/memory.high",
    "/sys/fs/cgroup/memory.current",
};
constexpr int kErrors[] = {ENOMEM, EAGAIN, EEXIST, EPERM};

// What L1 of limit_finder.h says, where no slack is allowed.
void CheckVerdict(const LimitReport& report, int error_number) {
  HAK_CHECK_LE(report.count, LimitReport::kMaxReadings);
  for (unsigned i = 0; i < report.count; ++i) {
    const LimitReading& reading = report.readings[i];
    HAK_CHECK_LT(std::strlen(reading.source), sizeof(reading.source));
    HAK_CHECK_NE(reading.value, kNoLimit);
  }
  HAK_CHECK_LT(report.explaining, static_cast<int>(report.count));
  if (error_number == EEXIST) {
    HAK_CHECK(report.detail == FailureDetail::kAddressInUse);
  }
  const bool exact = report.detail == FailureDetail::kRlimitAs ||
                     report.detail == FailureDetail::kRlimitData ||
                     report.detail == FailureDetail::kRlimitMemlock;
  if (!exact) return;
  HAK_CHECK_GE(report.explaining, 0);
  const LimitReading& reading = report.readings[report.explaining];
  const bool overflow = reading.use + report.needed < reading.use;
  HAK_CHECK(overflow || reading.use + report.needed > reading.value);
}

void Find(std::string_view input) {
  // What has not changed since the last input stays as it is.
  static FakeProcTree& tree = *new FakeProcTree;
  static std::array<std::string, std::size(kFiles)>& texts =
      *new std::array<std::string, std::size(kFiles)>;
  const int error_number =
      input.empty() ? ENOMEM
                    : kErrors[static_cast<unsigned char>(input[0]) % 4];
  std::uint64_t needed = 0;
  input.remove_prefix(std::min<std::size_t>(input.size(), 1));
  std::memcpy(&needed, input.data(), std::min(input.size(), sizeof(needed)));
  input.remove_prefix(std::min(input.size(), sizeof(needed)));
  for (std::size_t i = 0; i < std::size(kFiles); ++i) {
    const std::size_t end = std::min(input.find('\1'), input.size());
    if (input.substr(0, end) != texts[i]) {
      texts[i] = input.substr(0, end);
      if (end == 0) {
        tree.Remove(kFiles[i]);
      } else {
        tree.Write(kFiles[i], texts[i]);
      }
    }
    input.remove_prefix(std::min(input.size(), end + 1));
  }
  const LimitSources sources = {tree.files(), [] { return false; }};
  LimitReport report;
  FindLimitFrom(sources, needed, error_number, report);
  CheckVerdict(report, error_number);
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Find({reinterpret_cast<const char*>(data), size});
  return 0;
}
