#include "allocator/platform/linux_virtual_memory.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/standard_error.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/auxiliary_vector.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/platform/proc_reader.h"
#include "allocator/platform/single_threaded.h"
#include "allocator/platform/start_filter.h"
#include "allocator/platform/write_once.h"

namespace hakmem {

namespace {

constexpr int kWritable = PROT_READ | PROT_WRITE;
// MADV_DONTNEED_LOCKED, which older headers lack; kernels before Linux 5.18,
// too.
constexpr int kDontNeedLocked = 24;
// MADV_POPULATE_WRITE, likewise; MADV_COLD, of Linux 5.4.
constexpr int kPopulateWrite = 23;
constexpr int kCold = 20;
// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, of Linux 6.13; what no kernel
// knows.
constexpr int kGuardInstall = 102;
constexpr int kGuardRemove = 103;
constexpr int kNoAdvice = -1;
constexpr std::string_view kLockedMemory =
    "hakmem: memory is locked (mlockall), and this kernel (before Linux 5.18) "
    "takes none of it back: what is freed stays in memory";
// The kernel's initial value, for when the current one cannot be read.
constexpr std::uint64_t kUsualMaxMappings = 65'530;

// /proc/PID/pagemap has 64 bits for each page, of which so many are read at
// once. Bit 63: the page is in memory (Linux's pagemap.rst).
constexpr std::size_t kPageEntries = 128;
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;

// `how`: MAP_NORESERVE unless the kernel shall refuse what memory could never
// hold.
long Map(Address address, std::size_t bytes, int how, int protection) {
  constexpr unsigned long kNoFile = ~0UL;
  return SystemCall(SYS_mmap, address, bytes, protection,
                    how | MAP_PRIVATE | MAP_ANONYMOUS, kNoFile, 0);
}

// For what was just mapped, or whose loss has been told.
int Unmap(Address address, std::size_t bytes) {
  return ErrorOf(SystemCall(SYS_munmap, address, bytes));
}

int Advise(Address address, std::size_t bytes, int advice) {
  return ErrorOf(SystemCall(SYS_madvise, address, bytes, advice));
}

// Whether all of it is; this advice changes nothing.
bool IsMapped(Address address, std::size_t bytes) {
  return Advise(address, bytes, MADV_NORMAL) == 0;
}

// Undoes a refused move. From 6.17 on Linux moves mapping by mapping, and may
// come to one that cannot be moved, as a userfaultfd's: then what is before is
// gone, and the rest of the source is mapped.
void TakeBack(Address from, Address to, std::size_t bytes) {
  if (IsMapped(from, bytes)) return;
  const std::size_t page_bytes = KernelPageBytes();
  std::size_t gone = 0;  // not all is mapped from here on, but from `left` on
  std::size_t left = bytes;
  while (left - gone > page_bytes) {
    const std::size_t middle = gone + RoundDown((left - gone) / 2, page_bytes);
    (IsMapped(from + middle, bytes - middle) ? left : gone) = middle;
  }
  if (left == bytes) return;
  HAK_CHECK_EQ(ErrorOf(SystemCall(SYS_mremap, to, left, left,
                                  MREMAP_MAYMOVE | MREMAP_FIXED, from)),
               0);
}

// Of one page, or nobody tells: this advice is refused there alone.
bool IsLocked(Address page, std::size_t bytes) {
  return Advise(page, bytes, kCold) == EINVAL;
}

int SetAccess(Address address, std::size_t bytes, int protection) {
  return ErrorOf(SystemCall(SYS_mprotect, address, bytes, protection));
}

// The finaliser of splitmix64: every bit of the input reaches every bit of the
// result.
std::uint64_t Mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// For a kernel that has no random numbers yet (early boot) or forbids them: 16
// random bytes that it gave the process at its start, and the time.
std::uint64_t WeakRandom() {
  std::uint64_t words[2] = {};
  if (const Address bytes = AuxiliaryValue(AT_RANDOM); bytes != 0) {
    std::memcpy(words, reinterpret_cast<const void*>(bytes), sizeof(words));
  }
  return Mix(words[0] ^ Mix(words[1] ^ ReadClock(CLOCK_MONOTONIC)));
}

// How many bits the addresses of this process have: 47 on x86-64; 39, 42 or 48
// on aarch64; fewer under valgrind. The kernel puts the first stack, in which
// these random bytes are, at the top.
unsigned AddressBits() {
  const Address top = AuxiliaryValue(AT_RANDOM);
  return top == 0 ? 39 : static_cast<unsigned>(std::bit_width(top));
}

}  // namespace

std::size_t LinuxVirtualMemory::PageBytes() const { return KernelPageBytes(); }

void LinuxVirtualMemory::FailNth(std::uint64_t nth, bool from_then_on) {
  fail_nth_ = nth;
  fail_from_then_on_ = from_then_on;
  asked_.store(0, std::memory_order_relaxed);
}

bool LinuxVirtualMemory::IsRefusedByOrder() {
  if (fail_nth_ == 0) return false;
  const std::uint64_t call = asked_.fetch_add(1, std::memory_order_relaxed) + 1;
  return call == fail_nth_ || (fail_from_then_on_ && call > fail_nth_);
}

VmStatus LinuxVirtualMemory::MapNew(Address address, std::size_t bytes, int how,
                                    int protection) {
  VmStatus refused = {.call = VmCall::kMap, .bytes = bytes};
  if (IsRefusedByOrder()) {
    refused.error_number = ENOMEM;
    refused.injected = true;
    return refused;
  }
  const long got = Map(address, bytes, how | MAP_FIXED_NOREPLACE, protection);
  refused.error_number = ErrorOf(got);
  if (!refused.ok()) return refused;
  if (static_cast<Address>(got) == address) return {};
  // Linux before 4.17 takes the address for a hint.
  hakmem::Unmap(static_cast<Address>(got), bytes);
  refused.error_number = EEXIST;
  return refused;
}

VmStatus LinuxVirtualMemory::MapAt(Address address, std::size_t bytes) {
  return MapNew(address, bytes, MAP_NORESERVE, kWritable);
}

VmStatus LinuxVirtualMemory::MapBlock(Address address, std::size_t bytes) {
  return MapNew(address, bytes, 0, kWritable);
}

VmStatus LinuxVirtualMemory::Reserve(Address address, std::size_t bytes) {
  return MapNew(address, bytes, MAP_NORESERVE, PROT_NONE);
}

VmStatus LinuxVirtualMemory::Protect(Address address, std::size_t bytes) {
  return {.error_number = SetAccess(address, bytes, PROT_NONE)};
}

VmStatus LinuxVirtualMemory::Unprotect(Address address, std::size_t bytes) {
  return {.error_number = SetAccess(address, bytes, kWritable)};
}

// A kernel that has none refuses by EINVAL. So does one that has some where
// memory is locked, as all of it is from then on (mlockall). Other refusals are
// of this range alone.
bool LinuxVirtualMemory::AddGuardRegion(Address address, std::size_t bytes) {
  if (!MayHaveGuardRegions()) return false;
  int error = Advise(address, bytes, kGuardInstall);
  // Emulators (QEMU) take any advice and do nothing.
  if (error == 0 && ClosingSplits() && Advise(address, bytes, kNoAdvice) == 0) {
    error = EINVAL;
  }
  if (error == 0) guard_regions_.fetch_or(kHad, std::memory_order_relaxed);
  if (error == EINVAL) {
    guard_regions_.fetch_or(kRefused, std::memory_order_relaxed);
  }
  return error == 0;
}

VmStatus LinuxVirtualMemory::MapClosed(Address address, std::size_t bytes) {
  if (!MayHaveGuardRegions()) return Reserve(address, bytes);
  const VmStatus status = MapAt(address, bytes);
  if (!status.ok() || AddGuardRegion(address, bytes)) return status;
  // Locked memory has pages by now.
  closed_by_access_.store(true, std::memory_order_relaxed);
  hakmem::Unmap(address, bytes);
  return Reserve(address, bytes);
}

VmStatus LinuxVirtualMemory::Close(Address address, std::size_t bytes) {
  if (AddGuardRegion(address, bytes)) return {};
  closed_by_access_.store(true, std::memory_order_relaxed);
  return Protect(address, bytes);
}

VmStatus LinuxVirtualMemory::Open(Address address, std::size_t bytes) {
  VmStatus status;
  if (closed_by_access_.load(std::memory_order_relaxed)) {
    status = Unprotect(address, bytes);
  }
  if (status.ok() &&
      (guard_regions_.load(std::memory_order_relaxed) & kHad) != 0) {
    status.error_number = Advise(address, bytes, kGuardRemove);
  }
  return status;
}

// Under a filter of system calls `mincore` may end the process: it is none of
// systemd's @system-service, nor of what glibc's malloc calls.
VmStatus LinuxVirtualMemory::FindResident(Address address, std::size_t bytes,
                                          unsigned char* resident) {
  if (IsFiltered()) return ReadPageMap(address, bytes, resident);
  const int error = ErrorOf(SystemCall(SYS_mincore, address, bytes, resident));
  if (error != 0) return {.error_number = error};
  // The kernel keeps the other bits to itself.
  const std::size_t pages = bytes / PageBytes();
  for (std::size_t page = 0; page < pages; ++page) resident[page] &= 1;
  return {};
}

// Beside other threads no file is opened: they may count on the descriptor.
VmStatus LinuxVirtualMemory::ReadPageMap(Address address, std::size_t bytes,
                                         unsigned char* resident) {
  VmStatus status = {.error_number = ENOSYS};
  if (!MayOpenFiles()) return status;
  const int fd = ProcReader().Open("/proc/self/pagemap", status.error_number);
  if (fd < 0) return status;
  const std::size_t first = address / PageBytes();
  const std::size_t pages = bytes / PageBytes();
  std::uint64_t entries[kPageEntries];
  for (std::size_t done = 0; done < pages && status.ok();) {
    const std::size_t count = std::min(pages - done, kPageEntries);
    const auto wanted_bytes = static_cast<long>(count * sizeof(entries[0]));
    if (SystemCall(SYS_pread64, fd, entries, wanted_bytes,
                   (first + done) * sizeof(entries[0])) != wanted_bytes) {
      status.error_number = EIO;
    }
    for (std::size_t i = 0; i < count && status.ok(); ++i) {
      resident[done++] = (entries[i] & kPresent) != 0 ? 1 : 0;
    }
  }
  SystemCall(SYS_close, fd);
  return status;
}

std::size_t LinuxVirtualMemory::MaxMappings() {
  std::uint64_t value = kUsualMaxMappings;
  ProcReader().ReadNumber("/proc/sys/vm/max_map_count", value);
  return value;
}

// A mapping that is neither shared nor private is always refused, and Linux
// looks at the place first: nothing is mapped, which the process's figures
// (VmPeak) would show. A kernel that does not even say so of a page that is
// there (Linux before 4.17, valgrind) is asked by a mapping. Its EEXIST may be
// of another place: valgrind 3.19 at last asks Linux for address 0.
bool LinuxVirtualMemory::IsTaken(Address address, std::size_t bytes) {
  const auto is_known_taken = [](Address begin, std::size_t length) {
    constexpr unsigned long kNoFile = ~0UL;
    return ErrorOf(
               SystemCall(SYS_mmap, begin, length, PROT_NONE,
                          MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_NORESERVE,
                          kNoFile, 0)) == EEXIST;
  };
  const Address here = reinterpret_cast<Address>(this) & -PageBytes();
  // To map so much takes QEMU 7.2 seconds (docs/decisions/0090).
  if (here - address < bytes) return true;
  if (tells_of_taken_.load(std::memory_order_relaxed) ||
      is_known_taken(here, PageBytes())) {
    tells_of_taken_.store(true, std::memory_order_relaxed);
    return is_known_taken(address, bytes);
  }
  const long got =
      Map(address, bytes, MAP_NORESERVE | MAP_FIXED_NOREPLACE, PROT_NONE);
  // Linux looks at the place before any limit on memory, so that every other
  // refusal says nothing of the place.
  if (const int error = ErrorOf(got); error != 0) return error == EEXIST;
  hakmem::Unmap(static_cast<Address>(got), bytes);
  return static_cast<Address>(got) != address;
}

VmStatus LinuxVirtualMemory::Unmap(Address address, std::size_t bytes) {
  return {.error_number = UnmapAndTell(address, bytes)};
}

// Some kernels, emulators and enclaves take the advice and leave the pages as
// they are.
bool LinuxVirtualMemory::TakesPagesBack() {
  Taking taking = taking_.load(std::memory_order_relaxed);
  if (taking == Taking::kUnknown) {
    const std::size_t bytes = PageBytes();
    const long got = Map(0, bytes, MAP_NORESERVE, kWritable);
    // Without a page to try it on, one may be had the next time.
    if (ErrorOf(got) != 0) return true;
    auto& word = *reinterpret_cast<volatile char*>(got);
    word = 1;
    const bool done =
        Advise(static_cast<Address>(got), bytes, MADV_DONTNEED) == 0;
    // Where memory is locked, the advice is refused.
    taking = done && word != 0 ? Taking::kNone : Taking::kPages;
    hakmem::Unmap(static_cast<Address>(got), bytes);
    taking_.store(taking, std::memory_order_relaxed);
  }
  return taking == Taking::kPages;
}

// Whether the program has locked all that it had (a page of ours tells), or all
// that it maps.
bool LinuxVirtualMemory::MayAllBeLocked() {
  const std::size_t bytes = PageBytes();
  if (IsLocked(RoundDown<Address>(reinterpret_cast<Address>(this), bytes),
               bytes)) {
    return true;
  }
  const long got = Map(0, bytes, MAP_NORESERVE, kWritable);
  if (ErrorOf(got) != 0) return true;
  const bool locked = IsLocked(static_cast<Address>(got), bytes);
  hakmem::Unmap(static_cast<Address>(got), bytes);
  return locked;
}

// The program's locks of single blocks (mlock) end with the blocks, or they
// would count against its limit for ever; not what mlockall promises. A filter
// may kill for munlock.
VmStatus LinuxVirtualMemory::Purge(Address address, std::size_t bytes) {
  if (!TakesPagesBack()) return {.error_number = EOPNOTSUPP};
  int error = AdviseAndTell(address, bytes, MADV_DONTNEED);
  if (error != EINVAL) return {.error_number = error};
  if (!IsFiltered() && !MayAllBeLocked() &&
      ErrorOf(SystemCall(SYS_munlock, address, bytes)) == 0) {
    error = Advise(address, bytes, MADV_DONTNEED);
  }
  if (error == EINVAL) error = Advise(address, bytes, kDontNeedLocked);
  if (error == EINVAL && !IsFiltered() &&
      !told_of_locked_.exchange(true, std::memory_order_relaxed)) {
    RawPrinter line;
    WriteOnce(StandardError(),
              line.Text(kLockedMemory).Text(LineEnd().text()).text());
  }
  return {.error_number = error};
}

void LinuxVirtualMemory::AskForHugePages(Address address, std::size_t bytes) {
  Advise(address, bytes, MADV_HUGEPAGE);
}

void LinuxVirtualMemory::DeclineHugePages(Address address, std::size_t bytes) {
  Advise(address, bytes, MADV_NOHUGEPAGE);
}

void LinuxVirtualMemory::Populate(Address address, std::size_t bytes) {
  // Linux before 5.14 refuses; then the pages fault when they are touched.
  Advise(address, bytes, kPopulateWrite);
}

// By number: what has rewritten libc's mremap may pass on four of its five
// arguments (UCX before 1.15), and tells of the source alone.
VmStatus LinuxVirtualMemory::Move(Address from, Address to, std::size_t bytes,
                                  bool keep_source) {
  // Nothing has changed, though nobody could be asked.
  if (t_is_strict) return {.error_number = EPERM};
  const bool injected = IsRefusedByOrder();
  int error = injected ? ENOMEM : 0;
  TellOfLoss(to, bytes);
  if (!injected) {
    TellOfLoss(from, bytes);
    error = ErrorOf(SystemCall(SYS_mremap, from, bytes, bytes,
                               MREMAP_MAYMOVE | MREMAP_FIXED, to));
    if (error != 0) TakeBack(from, to, bytes);
  }
  if (error != 0) {
    VmStatus status = {.error_number = error,
                       .injected = injected,
                       .call = VmCall::kMove,
                       .bytes = bytes};
    // The kernel may have unmapped the target before it looked at all of the
    // source. At the limit on mappings it does so to nothing, refuses a new
    // mapping, and would refuse to unmap as well.
    status.target_lost =
        ErrorOf(Map(to, bytes, MAP_NORESERVE | MAP_FIXED, kWritable)) != 0 &&
        (!IsMapped(to, bytes) || !Purge(to, bytes).ok());
    if (status.target_lost) hakmem::Unmap(to, bytes);
    return status;
  }
  if (!keep_source) return {};
  // Not MREMAP_DONTUNMAP: over several mappings Linux 6.17 and later moves some
  // and then fails when memory runs out, and nobody could tell which.
  return {.source_lost = !MapAt(from, bytes).ok()};
}

VmStatus LinuxVirtualMemory::Renew(Address address, std::size_t bytes) {
  if (t_is_strict) return {.error_number = EPERM};
  TellOfLoss(address, bytes);
  const int error =
      ErrorOf(Map(address, bytes, MAP_NORESERVE | MAP_FIXED, kWritable));
  if (error == 0) return {};
  VmStatus status = {
      .error_number = error, .call = VmCall::kMap, .bytes = bytes};
  // It may have unmapped the range, or part of it, before it ran out of memory.
  status.target_lost = !IsMapped(address, bytes);
  if (status.target_lost) hakmem::Unmap(address, bytes);
  return status;
}

bool SealObject(const void* object, std::size_t bytes) {
  // The kernel would round up, and what lies behind the object is written.
  return bytes % KernelPageBytes() == 0 &&
         SetAccess(reinterpret_cast<Address>(object), bytes, PROT_READ) == 0;
}

void LinuxVirtualMemory::FillRandom(std::uint64_t* words, std::size_t count) {
  // No signal comes between the bytes of a call for so many.
  constexpr std::size_t kWords = 256 / sizeof(*words);
  for (; count != 0; count -= std::min(count, kWords), words += kWords) {
    const std::size_t part = std::min(count, kWords);
    const auto bytes = static_cast<long>(part * sizeof(*words));
    if (SystemCall(SYS_getrandom, words, bytes, GRND_NONBLOCK) != bytes) {
      std::generate_n(words, part, WeakRandom);
    }
  }
}

std::uint64_t LinuxVirtualMemory::NowMs() {
  return ReadClock(CLOCK_MONOTONIC_COARSE) / 1'000'000;
}

VirtualMemory::AddressRange LinuxVirtualMemory::RegionRange() const {
#if defined(__x86_64__)
  // The part that compiler-rt leaves to programs below its shadow
  // (tsan_platform.h: kLoAppMemEnd) and above it (asan_mapping.h: HighMem, and
  // the allocator's own space from 0x5000'0000'0000 on).
  if constexpr (kThreadSanitizer) return {0x0080'0000'0000, 0x0180'0000'0000};
  if constexpr (kAddressSanitizer) return {0x1100'0000'0000, 0x5000'0000'0000};
#elif defined(__aarch64__)
  // The same for 48-bit addresses.
  if constexpr (kThreadSanitizer) return {0x0001'0000'0000, 0x0009'0000'0000};
  if constexpr (kAddressSanitizer) return {0x3000'0000'0000, 0x5000'0000'0000};
#endif
  // On x86-64 [0x2000'0000'0000, 0x3c00'0000'0000), above CLISP's heap. The
  // kernel puts programs at two thirds of the addresses, and maps down from the
  // top, or, with an unlimited stack, from a sixth (decisions 0090, 0097).
  const Address step = Address{1} << (AddressBits() - 5);
  if (AddressBits() > 39) return {8 * step, 15 * step};
  return {12 * step, 21 * step};
}

}  // namespace hakmem
