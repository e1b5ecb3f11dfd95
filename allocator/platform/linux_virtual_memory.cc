#include "allocator/platform/linux_virtual_memory.h"

#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "allocator/base/sanitizer.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/platform/proc_reader.h"
#include "allocator/platform/write_once.h"

namespace hakmem {

namespace {

void* ToPointer(Address address) { return reinterpret_cast<void*>(address); }

constexpr int kWritable = PROT_READ | PROT_WRITE;
// MADV_DONTNEED_LOCKED, which older headers lack; kernels before Linux 5.18,
// too.
constexpr int kDontNeedLocked = 24;
// MADV_POPULATE_WRITE, likewise.
constexpr int kPopulateWrite = 23;
constexpr std::string_view kLockedMemory =
    "hakmem: memory is locked (mlockall), and this kernel (before Linux 5.18) "
    "takes none of it back: what is freed stays in memory\n";
// The kernel's initial value, for when the current one cannot be read.
constexpr std::uint64_t kUsualMaxMappings = 65'530;

// /proc/PID/pagemap has 64 bits for each page, of which so many are read at
// once. Bit 63: the page is in memory; bit 62: it is in swap (Linux's
// pagemap.rst).
constexpr std::size_t kPageEntries = 512;
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;

void* Map(Address address, std::size_t bytes, int how, int protection) {
  return mmap(ToPointer(address), bytes, protection,
              how | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Whether all of it is; this advice changes nothing.
bool IsMapped(Address address, std::size_t bytes) {
  return madvise(ToPointer(address), bytes, MADV_NORMAL) == 0;
}

VmStatus StatusOf(int result) {
  return {.error_number = result == 0 ? 0 : errno};
}

std::uint64_t NanosecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
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
  if (const unsigned long bytes = getauxval(AT_RANDOM); bytes != 0) {
    std::memcpy(words, ToPointer(bytes), sizeof(words));
  }
  return Mix(words[0] ^ Mix(words[1] ^ NanosecondsOf(CLOCK_MONOTONIC)));
}

// How many bits the addresses of this process have: 47 on x86-64; 39, 42 or 48
// on aarch64; fewer under valgrind. The kernel puts the first stack, in which
// these random bytes are, at the top.
unsigned AddressBits() {
  const unsigned long top = getauxval(AT_RANDOM);
  return top == 0 ? 39 : static_cast<unsigned>(std::bit_width(top));
}

}  // namespace

std::size_t LinuxVirtualMemory::PageBytes() const {
  // A variable of the loader's: no system call, and never an error.
  return static_cast<std::size_t>(getpagesize());
}

void LinuxVirtualMemory::FailNth(std::uint64_t nth, bool from_then_on) {
  fail_nth_ = nth;
  fail_from_then_on_ = from_then_on;
  asked_.store(0, std::memory_order_relaxed);
}

// Under a filter of system calls `mincore` may end the process: it is none of
// systemd's @system-service, and there is no asking. A program may set up its
// filter at any time.
bool LinuxVirtualMemory::IsFiltered() {
  if (!filtered_.load(std::memory_order_relaxed)) {
    const int mode = prctl(PR_GET_SECCOMP);
    // A kernel that has no filters says EINVAL; all else is a filter's answer.
    if (mode == SECCOMP_MODE_FILTER || (mode < 0 && errno != EINVAL)) {
      filtered_.store(true, std::memory_order_relaxed);
    }
  }
  return filtered_.load(std::memory_order_relaxed);
}

bool LinuxVirtualMemory::IsRefusedByOrder() {
  if (fail_nth_ == 0) return false;
  const std::uint64_t call = asked_.fetch_add(1, std::memory_order_relaxed) + 1;
  return call == fail_nth_ || (fail_from_then_on_ && call > fail_nth_);
}

VmStatus LinuxVirtualMemory::MapNew(Address address, std::size_t bytes,
                                    int protection) {
  const ErrnoGuard guard;
  VmStatus refused = {.call = VmCall::kMap, .bytes = bytes};
  if (IsRefusedByOrder()) {
    refused.error_number = ENOMEM;
    refused.injected = true;
    return refused;
  }
  void* const got = Map(address, bytes, MAP_FIXED_NOREPLACE, protection);
  if (got == MAP_FAILED) {
    refused.error_number = errno;
    return refused;
  }
  if (got == ToPointer(address)) return {};
  // Linux before 4.17 takes the address for a hint.
  munmap(got, bytes);
  refused.error_number = EEXIST;
  return refused;
}

VmStatus LinuxVirtualMemory::MapAt(Address address, std::size_t bytes) {
  return MapNew(address, bytes, kWritable);
}

VmStatus LinuxVirtualMemory::Reserve(Address address, std::size_t bytes) {
  return MapNew(address, bytes, PROT_NONE);
}

VmStatus LinuxVirtualMemory::Protect(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  return StatusOf(mprotect(ToPointer(address), bytes, PROT_NONE));
}

VmStatus LinuxVirtualMemory::Unprotect(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  return StatusOf(mprotect(ToPointer(address), bytes, kWritable));
}

VmStatus LinuxVirtualMemory::FindResident(Address address, std::size_t bytes,
                                          unsigned char* resident) {
  const ErrnoGuard guard;
  if (IsFiltered()) return ReadPageMap(address, bytes, kPresent, resident);
  const VmStatus status =
      StatusOf(mincore(ToPointer(address), bytes, resident));
  if (!status.ok()) return status;
  // The kernel keeps the other bits to itself.
  const std::size_t pages = bytes / PageBytes();
  for (std::size_t page = 0; page < pages; ++page) resident[page] &= 1;
  return {};
}

VmStatus LinuxVirtualMemory::FindTouched(Address address, std::size_t bytes,
                                         unsigned char* touched) {
  const ErrnoGuard guard;
  return ReadPageMap(address, bytes, kPresentOrSwapped, touched);
}

// Whether each page has one of the bits `wanted`.
VmStatus LinuxVirtualMemory::ReadPageMap(Address address, std::size_t bytes,
                                         std::uint64_t wanted,
                                         unsigned char* has) {
  VmStatus status;
  const int fd = ProcReader().Open("/proc/self/pagemap", status.error_number);
  if (fd < 0) return status;
  const std::size_t page_bytes = PageBytes();
  const std::size_t pages = bytes / page_bytes;
  std::uint64_t entries[kPageEntries];
  for (std::size_t done = 0; done < pages && status.ok();) {
    const std::size_t count = std::min(pages - done, kPageEntries);
    const std::size_t wanted_bytes = count * sizeof(entries[0]);
    const std::size_t at = (address / page_bytes + done) * sizeof(entries[0]);
    if (syscall(SYS_pread64, fd, entries, wanted_bytes, at) !=
        static_cast<long>(wanted_bytes)) {
      status.error_number = EIO;
    }
    for (std::size_t i = 0; i < count && status.ok(); ++i) {
      has[done + i] = (entries[i] & wanted) != 0 ? 1 : 0;
    }
    done += count;
  }
  syscall(SYS_close, fd);
  return status;
}

std::size_t LinuxVirtualMemory::MaxMappings() {
  const ErrnoGuard guard;
  std::uint64_t value = 0;
  const bool found =
      ProcReader().ReadNumber("/proc/sys/vm/max_map_count", value);
  return static_cast<std::size_t>(found ? value : kUsualMaxMappings);
}

// By number: sanitizers would follow each mapping in their own tables, which
// takes long for a range of terabytes.
bool LinuxVirtualMemory::IsTaken(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  const long got =
      syscall(SYS_mmap, address, bytes, PROT_NONE,
              MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, off_t{0});
  // Linux looks at the place before any limit on memory, so that every other
  // refusal says nothing of the place.
  if (got == -1) return errno == EEXIST;
  syscall(SYS_munmap, got, bytes);
  return static_cast<Address>(got) != address;
}

VmStatus LinuxVirtualMemory::Unmap(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  return StatusOf(munmap(ToPointer(address), bytes));
}

VmStatus LinuxVirtualMemory::Purge(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  if (madvise(ToPointer(address), bytes, MADV_DONTNEED) == 0) return {};
  // Pages that the program has locked (mlockall) go back only so.
  if (errno == EINVAL &&
      madvise(ToPointer(address), bytes, kDontNeedLocked) == 0) {
    return {};
  }
  const int error = errno;
  if (error == EINVAL &&
      !told_of_locked_.exchange(true, std::memory_order_relaxed)) {
    WriteOnce(STDERR_FILENO, kLockedMemory);
  }
  return {.error_number = error};
}

void LinuxVirtualMemory::AskForHugePages(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  madvise(ToPointer(address), bytes, MADV_HUGEPAGE);
}

void LinuxVirtualMemory::DeclineHugePages(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  madvise(ToPointer(address), bytes, MADV_NOHUGEPAGE);
}

void LinuxVirtualMemory::Populate(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  // Linux before 5.14 refuses; then the pages fault when they are touched.
  madvise(ToPointer(address), bytes, kPopulateWrite);
}

VmStatus LinuxVirtualMemory::Move(Address from, Address to, std::size_t bytes,
                                  bool keep_source) {
  const ErrnoGuard guard;
  const bool injected = IsRefusedByOrder();
  if (injected ||
      mremap(ToPointer(from), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
             ToPointer(to)) == MAP_FAILED) {
    VmStatus status = {.error_number = injected ? ENOMEM : errno,
                       .injected = injected,
                       .call = VmCall::kMove,
                       .bytes = bytes};
    // The kernel may have unmapped the target before it looked at all of the
    // source. At the limit on mappings it does so to nothing, refuses a new
    // mapping, and would refuse to unmap as well.
    status.target_lost = Map(to, bytes, MAP_FIXED, kWritable) == MAP_FAILED &&
                         (!IsMapped(to, bytes) || !Purge(to, bytes).ok());
    if (status.target_lost) munmap(ToPointer(to), bytes);
    return status;
  }
  if (!keep_source) return {};
  // Not MREMAP_DONTUNMAP: over several mappings Linux 6.17 and later moves some
  // and then fails when memory runs out, and nobody could tell which.
  return {.source_lost = !MapAt(from, bytes).ok()};
}

VmStatus LinuxVirtualMemory::Renew(Address address, std::size_t bytes) {
  const ErrnoGuard guard;
  if (Map(address, bytes, MAP_FIXED, kWritable) != MAP_FAILED) return {};
  VmStatus status = {
      .error_number = errno, .call = VmCall::kMap, .bytes = bytes};
  // It may have unmapped the range, or part of it, before it ran out of memory.
  status.target_lost = !IsMapped(address, bytes);
  if (status.target_lost) munmap(ToPointer(address), bytes);
  return status;
}

bool SealObject(const void* object, std::size_t bytes) {
  const ErrnoGuard guard;
  // The kernel would round up, and what lies behind the object is written.
  return bytes % static_cast<std::size_t>(getpagesize()) == 0 &&
         mprotect(const_cast<void*>(object), bytes, PROT_READ) == 0;
}

std::uint64_t LinuxVirtualMemory::Random() {
  const ErrnoGuard guard;
  std::uint64_t value = 0;
  // By number, because getrandom() is a cancellation point.
  const long got = syscall(SYS_getrandom, &value, sizeof(value), GRND_NONBLOCK);
  return got == sizeof(value) ? value : WeakRandom();
}

std::uint64_t LinuxVirtualMemory::NowMs() {
  const ErrnoGuard guard;
  return NanosecondsOf(CLOCK_MONOTONIC_COARSE) / 1'000'000;
}

VirtualMemory::AddressRange LinuxVirtualMemory::RegionRange() const {
  const ErrnoGuard guard;
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
  // On x86-64 [0x3000'0000'0000, 0x5400'0000'0000): the kernel puts programs at
  // two thirds of the address space and maps downwards from the top, or, when
  // the stack is unlimited, upwards from one third.
  const Address step = Address{1} << (AddressBits() - 5);
  return {12 * step, 21 * step};
}

}  // namespace hakmem
