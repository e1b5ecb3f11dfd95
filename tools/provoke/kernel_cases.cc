// Limits of the kernel that a process can set or use up by itself.
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"
#include "tools/provoke/mapping_filter.h"
#include "tools/provoke/process_facts.h"

namespace hakmem::provoke {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kGiB = kMiB << 10;
// What the process may grow by.
constexpr rlim_t kRoomBytes = 64 * kMiB;

std::size_t SizeOr(const Settings& settings, std::size_t size) {
  return settings.size == 0 ? size : settings.size;
}

// Fills up under a soft limit of what is in use (`field` of /proc/self/status)
// and some room.
Verdict UnderLimit(const Settings& settings, int resource, const char* field) {
  rlimit old = {};
  getrlimit(resource, &old);
  const auto use =
      static_cast<rlim_t>(NumberIn("/proc/self/status", field)) * 1024;
  rlimit tight = old;
  tight.rlim_cur = use + kRoomBytes;
  if (old.rlim_max < tight.rlim_cur) {
    return {.not_permitted = "the hard limit is too low for this case"};
  }
  setrlimit(resource, &tight);
  Verdict verdict;
  {
    Pile pile;
    verdict.provoked = pile.Fill({.size = SizeOr(settings, kMiB)}, kGiB);
  }
  setrlimit(resource, &old);
  return verdict;
}

Verdict RlimitAs(const Settings& settings) {
  return UnderLimit(settings, RLIMIT_AS, "VmSize:");
}

Verdict RlimitData(const Settings& settings) {
  return UnderLimit(settings, RLIMIT_DATA, "VmData:");
}

// Root may lock as much as it likes, as long as it has this capability.
bool DropCapability(unsigned capability) {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3,
                                     .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  data[CAP_TO_INDEX(capability)].effective &= ~CAP_TO_MASK(capability);
  return syscall(SYS_capset, &header, data) == 0;
}

// All that is mapped from now on counts as locked.
Verdict RlimitMemlock(const Settings& settings) {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, kRoomBytes);
  if (limit.rlim_cur < 4 * kMiB) {
    return {.not_permitted = "the hard limit is too low for this case"};
  }
  setrlimit(RLIMIT_MEMLOCK, &limit);
  if (!DropCapability(CAP_IPC_LOCK) ||
      mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) {
    return {.not_permitted = "memory cannot be locked here"};
  }
  Verdict verdict;
  {
    Pile pile;
    verdict.provoked = pile.Fill({.size = SizeOr(settings, kMiB)}, kGiB);
  }
  munlockall();
  return verdict;
}

// Every second page of `pages` gets another protection, until the kernel
// refuses to split the mapping further.
bool UseMappingsUp(char* pages, std::size_t count, std::size_t page_bytes) {
  std::size_t page = 1;
  while (page < count &&
         mprotect(pages + page * page_bytes, page_bytes, PROT_READ) == 0) {
    page += 2;
  }
  if (page >= count) return false;
  // The kernel lets mmap have one more than mprotect.
  for (int i = 0; i < 4; ++i) {
    if (mmap(nullptr, page_bytes, i % 2 == 0 ? PROT_READ : PROT_NONE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
      return true;
    }
  }
  return false;
}

Verdict MaxMapCount(const Settings& settings) {
  constexpr long long kMostMappings = 4'000'000;
  const long long most = NumberIn("/proc/sys/vm/max_map_count", "");
  if (most < 0 || most > kMostMappings) {
    return {.not_permitted = "vm.max_map_count is " + std::to_string(most) +
                             ", too many to be used up"};
  }
  const auto page_bytes = static_cast<std::size_t>(getpagesize());
  const std::size_t count = 2 * (static_cast<std::size_t>(most) + 8);
  void* const pages = mmap(nullptr, count * page_bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    return {.not_permitted = "no address space for so many mappings"};
  }
  Verdict verdict;
  // Hardened maps its first memory without access, and has fewer mappings when
  // all of it is open.
  Pile first;
  first.Fill({.size = SizeOr(settings, kMiB)}, 8 * kMiB);
  if (UseMappingsUp(static_cast<char*>(pages), count, page_bytes)) {
    Pile pile;
    verdict.provoked = pile.Fill({.size = SizeOr(settings, kMiB)}, kGiB);
  }
  munmap(pages, count * page_bytes);
  return verdict;
}

// From the block's end on the addresses belong to somebody else.
Verdict AddressInUse(const Settings&) {
  constexpr std::size_t kSize = 512 * kMiB;
  // As long as the largest zone; what is in the way of a piece stays.
  constexpr std::size_t kOthers = 8192 * kGiB;
  constexpr std::size_t kPiece = 64 * kGiB;
  constexpr std::size_t kAlign = 2 * kMiB;
  void* const first = Try({.size = kSize});
  if (first == nullptr) return {};
  // The block may be a page longer than that.
  const auto end =
      (reinterpret_cast<std::uintptr_t>(first) + kSize) / kAlign * kAlign +
      kAlign;
  std::vector<void*> others;
  for (std::size_t at = 0; at < kOthers; at += kPiece) {
    void* const piece =
        mmap(reinterpret_cast<void*>(end + at), kPiece, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);
    if (piece != MAP_FAILED) others.push_back(piece);
  }
  Verdict verdict;
  if (others.empty()) {
    verdict.not_permitted = "the addresses after the block are in use";
  } else {
    void* const second = Try({.size = kSize});
    verdict.provoked = second == nullptr;
    free(second);
    for (void* piece : others) munmap(piece, kPiece);
  }
  free(first);
  return verdict;
}

Verdict Unknown(const Settings& settings) {
  if (!RefuseLongMappings()) {
    return {.not_permitted = "the kernel takes no seccomp filter"};
  }
  return {.provoked = Try({.size = SizeOr(settings, kGiB)}) == nullptr};
}

// A block that takes a mapping of its own each time.
Verdict Injected(const Settings& settings) {
  Pile pile;
  return {.provoked =
              pile.Fill({.size = SizeOr(settings, 300 * kMiB)}, 100 * kGiB)};
}

// The refusal that hakmem gets over: no call fails.
Verdict InjectedOnce(const Settings& settings) {
  Pile pile;
  const bool failed =
      pile.Fill({.size = SizeOr(settings, 300 * kMiB)}, 30 * kGiB);
  return {.provoked = !failed};
}

}  // namespace

std::vector<Case> KernelCases() {
  return {
      {"rlimit_as", "MapFail", "rlimit_as",
       "block after block under RLIMIT_AS, 64 MiB above what is in use",
       nullptr, nullptr, RlimitAs},
      {"rlimit_data", "MapFail", "rlimit_data",
       "block after block under RLIMIT_DATA, 64 MiB above what is in use",
       nullptr, nullptr, RlimitData},
      {"rlimit_memlock", "MapFail", "rlimit_memlock",
       "block after block after mlockall(MCL_FUTURE), under RLIMIT_MEMLOCK",
       nullptr, nullptr, RlimitMemlock},
      {"max_map_count", "MapFail", "max_map_count",
       "as many mappings as vm.max_map_count allows, then block after block",
       nullptr, nullptr, MaxMapCount},
      {"address_in_use", "MapFail", "address_in_use",
       "somebody else maps what lies behind hakmem's blocks", nullptr, nullptr,
       AddressInUse},
      {"unknown", "MapFail", "unknown",
       "a seccomp filter refuses long mappings", nullptr, nullptr, Unknown},
      {"injected", "MapFail", "injected",
       "every mapping call from the 60th on is refused", "HAKMEM_FAIL_NTH",
       "60+", Injected},
      {"injected_once", "MapFail", "injected",
       "one mapping call is refused, the next is not", "HAKMEM_FAIL_NTH", "60",
       InjectedOnce},
  };
}

}  // namespace hakmem::provoke
