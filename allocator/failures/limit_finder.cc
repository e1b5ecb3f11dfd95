#include "allocator/failures/limit_finder.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include <cerrno>
#include <limits>
#include <string_view>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/system_call.h"
#include "allocator/failures/cgroup_limits.h"
#include "allocator/platform/mapping_probe.h"
#include "allocator/platform/single_threaded.h"
#include "allocator/platform/start_filter.h"

namespace hakmem {

namespace {

constexpr char kLimitsFile[] = "/proc/self/limits";
constexpr char kMapsFile[] = "/proc/self/maps";

// mremap wants room for mappings that it may have to split: it refuses from
// vm.max_map_count - 5 on (check_mremap_params).
constexpr std::uint64_t kMappingSlack = 6;

// The kernel charges a group for this many pages at a time.
constexpr std::uint64_t kChargeBatchBytes = 64 * 4096;

// Committed_AS is exact; what the kernel compares is off by at most this part
// of the machine's memory (mm_compute_batch).
constexpr std::uint64_t kCommitSlackDivisor = 256;

constexpr unsigned kCapIpcLock = 14;
constexpr unsigned kCapSysAdmin = 21;

std::uint64_t Sum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}
std::uint64_t Less(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

// "VmSize:\t    3060 kB", after its first word.
bool ParseKilobytes(std::string_view line, std::uint64_t& bytes) {
  std::uint64_t value = 0;
  if (!ParseDecimal(TakeWord(line), value) || value > kNoLimit / 1024) {
    return false;
  }
  bytes = value * 1024;
  return true;
}

// One search. Its functions are kept apart, so that their buffers are not on
// the stack at once.
class Search {
 public:
  Search(const LimitSources& sources, LimitReport& report)
      : sources_(sources), report_(report) {}

  void Read(int error_number);
  bool Conclude(std::uint64_t needed_bytes, int error_number);

 private:
  struct Limit {
    std::uint64_t soft = kNoLimit;
    std::uint64_t hard = kNoLimit;
  };

  HAK_COLD void ReadStatus();
  HAK_COLD void ReadLimits(int error_number);
  HAK_COLD void ReadMaps();
  HAK_COLD void ReadOvercommit();
  HAK_COLD void ReadMeminfo();

  bool Explain(int reading, FailureDetail detail, std::uint64_t needed);
  bool Exceeds(int reading, std::uint64_t needed) const;
  bool ExplainByMappings(std::uint64_t slack);
  HAK_COLD bool ExplainByData(std::uint64_t needed);
  bool ExplainByOvercommit(std::uint64_t needed);
  HAK_COLD bool ExplainByGuess(std::uint64_t needed);
  bool ExplainByCgroup(std::uint64_t needed);
  void ExplainRefusedMemory(std::uint64_t needed);

  const LimitSources& sources_;
  LimitReport& report_;

  // From /proc/thread-self/status, in bytes.
  bool status_read_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t data_ = 0;
  std::uint64_t locked_ = 0;
  std::uint64_t capabilities_ = 0;

  Limit data_limit_;

  bool guesses_ = false;
  // From /proc/meminfo, in bytes.
  std::uint64_t memory_ = 0;
  std::uint64_t swap_ = 0;
  std::uint64_t commit_limit_ = 0;
  std::uint64_t committed_ = 0;

  bool maps_cut_ = false;
  // Indexes of readings, or -1.
  int mappings_ = -1;
  int as_ = -1;
  int data_reading_ = -1;
  int memlock_ = -1;
  int commit_ = -1;
};

void Search::ReadStatus() {
  LineReader reader(sources_.files, "/proc/thread-self/status");
  std::string_view line;
  while (reader.Next(line)) {
    const std::string_view word = TakeWord(line);
    if (word == "VmSize:") {
      status_read_ = ParseKilobytes(line, size_);
    } else if (word == "VmData:") {
      ParseKilobytes(line, data_);
    } else if (word == "VmLck:") {
      ParseKilobytes(line, locked_);
    } else if (word == "CapEff:") {
      std::string_view digits = TakeWord(line);
      capabilities_ = TakeHex(digits);
    }
  }
  sources_.files.NoteError(reader.error_number());
}

// "Max address space         unlimited            unlimited            bytes".
void Search::ReadLimits(int error_number) {
  LineReader reader(sources_.files, kLimitsFile);
  std::string_view line;
  while (reader.Next(line)) {
    const auto take = [&line](std::string_view name, Limit& limit) {
      if (!line.starts_with(name)) return false;
      line.remove_prefix(name.size());
      return ParseLimit(TakeWord(line), limit.soft) &&
             ParseLimit(TakeWord(line), limit.hard) && limit.soft != kNoLimit;
    };
    Limit limit;
    if (take("Max address space ", limit)) {
      as_ = report_.Add(kLimitAs, kLimitsFile, limit.soft, size_);
    } else if (take("Max data size ", limit)) {
      data_limit_ = limit;
      data_reading_ = report_.Add(kLimitData, kLimitsFile, limit.soft, data_);
    } else if (error_number == EAGAIN && take("Max locked memory ", limit)) {
      // Every process has this limit, and few come near it.
      memlock_ = report_.Add(kLimitMemlock, kLimitsFile, limit.soft, locked_);
    }
  }
  sources_.files.NoteError(reader.error_number());
}

void Search::ReadMaps() {
  std::uint64_t limit = 0;
  if (!sources_.files.ReadNumber("/proc/sys/vm/max_map_count", limit) ||
      limit == kNoLimit) {
    return;
  }
  LineReader reader(sources_.files, kMapsFile);
  std::string_view line;
  std::uint64_t count = 0;
  while (reader.bytes_read() < kMaxMapsBytes && reader.Next(line)) {
    // The kernel's own page, which it does not count.
    if (!line.ends_with("[vsyscall]")) ++count;
  }
  sources_.files.NoteError(reader.error_number());
  maps_cut_ = reader.bytes_read() >= kMaxMapsBytes;
  if (count == 0) return;
  mappings_ = report_.Add(
      kLimitMaxMapCount,
      maps_cut_ ? "/proc/self/maps, its first 8 MiB" : kMapsFile, limit, count);
}

void Search::ReadMeminfo() {
  LineReader reader(sources_.files, "/proc/meminfo");
  std::string_view line;
  while (reader.Next(line)) {
    const std::string_view word = TakeWord(line);
    if (word == "MemTotal:") {
      ParseKilobytes(line, memory_);
    } else if (word == "SwapTotal:") {
      ParseKilobytes(line, swap_);
    } else if (word == "CommitLimit:") {
      ParseKilobytes(line, commit_limit_);
    } else if (word == "Committed_AS:") {
      ParseKilobytes(line, committed_);
    }
  }
  sources_.files.NoteError(reader.error_number());
}

// Mode 2 counts all promises. Mode 0 guesses: it compares one block with all of
// memory. Mode 1 refuses nothing.
void Search::ReadOvercommit() {
  const ProcReader& files = sources_.files;
  std::uint64_t mode = 0;
  if (!files.ReadNumber("/proc/sys/vm/overcommit_memory", mode)) return;
  guesses_ = mode == 0;
  if (mode != 2) return;
  ReadMeminfo();
  std::uint64_t limit = commit_limit_;
  if (limit == 0) return;
  std::uint64_t kilobytes = 0;
  if ((capabilities_ >> kCapSysAdmin & 1) == 0 &&
      files.ReadNumber("/proc/sys/vm/admin_reserve_kbytes", kilobytes)) {
    limit = Less(limit, kilobytes * 1024);
  }
  if (files.ReadNumber("/proc/sys/vm/user_reserve_kbytes", kilobytes)) {
    const std::uint64_t part = size_ / 32;
    const std::uint64_t reserve = kilobytes * 1024;
    limit = Less(limit, part < reserve ? part : reserve);
  }
  commit_ = report_.Add(kLimitOvercommit,
                        "/proc/meminfo, CommitLimit less "
                        "vm.admin_reserve_kbytes and vm.user_reserve_kbytes",
                        limit, committed_);
}

void Search::Read(int error_number) {
  report_.count = 0;
  ReadStatus();
  ReadMaps();
  // Without them nothing is known of the limits' use.
  if (status_read_) ReadLimits(error_number);
  ReadOvercommit();
  ReadCgroupLimits(sources_.files, report_);
}

bool Search::Explain(int reading, FailureDetail detail, std::uint64_t needed) {
  report_.explaining = reading;
  report_.detail = detail;
  report_.needed = needed;
  return true;
}

bool Search::Exceeds(int reading, std::uint64_t needed) const {
  if (reading < 0 || needed == 0) return false;
  const LimitReading& limit = report_.readings[reading];
  const std::uint64_t wanted = Sum(limit.use, needed);
  return wanted > limit.value ||
         (wanted == limit.value &&
          PlantedDefect(Defect::kLimitReachedIsExceeded));
}

bool Search::ExplainByMappings(std::uint64_t slack) {
  if (mappings_ < 0) return false;
  LimitReading& limit = report_.readings[mappings_];
  if (limit.use <= limit.value && maps_cut_ && sources_.mappings_used_up()) {
    limit.use = Sum(limit.value, 1);
  }
  if (Sum(limit.use, slack) <= limit.value) return false;
  return Explain(mappings_, FailureDetail::kMaxMapCount, 1);
}

bool Search::ExplainByData(std::uint64_t needed) {
  if (!Exceeds(data_reading_, needed)) return false;
  // The kernel lets a soft limit of 0 pass, for valgrind.
  if (data_limit_.soft == 0 && Sum(data_, needed) <= data_limit_.hard) {
    return false;
  }
  LineReader reader(sources_.files,
                    "/sys/module/kernel/parameters/ignore_rlimit_data");
  std::string_view line;
  if (reader.Next(line) && line == "Y") return false;
  return Explain(data_reading_, FailureDetail::kRlimitData, needed);
}

// Every process has this limit, and few come near it.
bool Search::ExplainByGuess(std::uint64_t needed) {
  if (!guesses_) return false;
  ReadMeminfo();
  const std::uint64_t all = Sum(memory_, swap_);
  if (memory_ == 0 || needed <= all) return false;
  const int reading = report_.Add(
      kLimitOvercommit, "/proc/meminfo, MemTotal and SwapTotal", all, 0);
  return Explain(reading, FailureDetail::kOvercommit, needed);
}

bool Search::ExplainByOvercommit(std::uint64_t needed) {
  if (commit_ < 0 || needed == 0) return false;
  const LimitReading& limit = report_.readings[commit_];
  const std::uint64_t slack = memory_ / kCommitSlackDivisor;
  const std::uint64_t wanted = Sum(limit.use, Sum(needed, slack));
  if (wanted < limit.value) return false;
  return Explain(commit_, FailureDetail::kOvercommit, needed);
}

// A group's limit never refuses the mapping itself, only the kernel's memory
// for it: when the group is full, and there is nothing to kill.
bool Search::ExplainByCgroup(std::uint64_t needed) {
  for (unsigned i = 0; i < report_.count; ++i) {
    const LimitReading& limit = report_.readings[i];
    if (limit.name != kLimitCgroupMax) continue;
    if (Sum(limit.use, kChargeBatchBytes) >= limit.value) {
      return Explain(static_cast<int>(i), FailureDetail::kCgroup, needed);
    }
  }
  // So full that it could not even open all files.
  return sources_.files.memory_refused() &&
         Explain(-1, FailureDetail::kCgroup, needed);
}

void Search::ExplainRefusedMemory(std::uint64_t needed) {
  // In the kernel's order; what is only likely comes after what is certain.
  if (ExplainByMappings(0)) return;
  if (report_.adds_addresses && Exceeds(as_, needed)) {
    Explain(as_, FailureDetail::kRlimitAs, needed);
    return;
  }
  if (ExplainByData(needed) || ExplainByOvercommit(needed) ||
      ExplainByGuess(needed)) {
    return;
  }
  if (ExplainByMappings(kMappingSlack)) return;
  ExplainByCgroup(needed);
}

bool Search::Conclude(std::uint64_t needed_bytes, int error_number) {
  report_.explaining = -1;
  report_.detail = FailureDetail::kUnknown;
  report_.needed = needed_bytes;
  if (error_number == EEXIST) {
    report_.detail = FailureDetail::kAddressInUse;
  } else if (error_number == ENOMEM) {
    ExplainRefusedMemory(needed_bytes);
  } else if (error_number == EAGAIN && Exceeds(memlock_, needed_bytes) &&
             (capabilities_ >> kCapIpcLock & 1) == 0) {
    Explain(memlock_, FailureDetail::kRlimitMemlock, needed_bytes);
  }
  return status_read_ || report_.detail != FailureDetail::kUnknown;
}

std::uint64_t MemoryAndSwap() {
  struct sysinfo info = {};
  if (IsFiltered() || ErrorOf(SystemCall(SYS_sysinfo, &info)) != 0) {
    return kNoLimit;
  }
  return (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
}

// What can be told without a file: the kernel is tried.
HAK_COLD void FindLimitByTrying(std::uint64_t needed, int error_number,
                                LimitReport& report) {
  report.count = 0;
  report.explaining = -1;
  report.detail = error_number == EEXIST ? FailureDetail::kAddressInUse
                                         : FailureDetail::kUnknown;
  report.needed = needed;
  if (error_number != ENOMEM) return;
  if (MappingsUsedUp()) {
    report.detail = FailureDetail::kMaxMapCount;
    report.needed = 1;
    return;
  }
  if (needed == 0 || IsFilterNoted()) return;
  const std::uint64_t addresses = SoftLimit(RLIMIT_AS);
  if (report.adds_addresses && addresses != kNoLimit &&
      AddressesUsedUp(needed)) {
    report.detail = FailureDetail::kRlimitAs;
    report.explaining =
        report.Add(kLimitAs, "getrlimit; the use is at least this", addresses,
                   Less(Sum(addresses, 1), needed));
    return;
  }
  const std::uint64_t all = MemoryAndSwap();
  if (needed > all && SoftLimit(RLIMIT_DATA) == kNoLimit) {
    report.detail = FailureDetail::kOvercommit;
    report.explaining = report.Add(kLimitOvercommit, "sysinfo", all, 0);
  }
}

}  // namespace

bool FindLimitFrom(const LimitSources& sources, std::size_t needed_bytes,
                   int error_number, LimitReport& report) {
  Search search(sources, report);
  search.Read(error_number);
  return search.Conclude(needed_bytes, error_number);
}

void FindLimit(std::size_t needed_bytes, int error_number,
               LimitReport& report) {
  const bool may_open = report.may_open_files || MayOpenFiles();
  if (!may_open || !FindLimitFrom({ProcReader(), &MappingsUsedUp}, needed_bytes,
                                  error_number, report)) {
    FindLimitByTrying(needed_bytes, error_number, report);
  }
}

}  // namespace hakmem
