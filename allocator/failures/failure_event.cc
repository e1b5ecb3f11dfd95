#include "allocator/failures/failure_event.h"

#include <cerrno>
#include <iterator>

namespace hakmem {
namespace {

constexpr const char* kReasonNames[] = {"none", "Threshold", "Exhaustion",
                                        "MapFail"};

constexpr const char* kDetailNames[] = {
    "none",      "size",          "alignment",      "overflow",
    "max_alloc", "region",        "heap_limit",     "rlimit_memlock",
    "metadata",  "max_map_count", "rlimit_as",      "rlimit_data",
    "cgroup",    "overcommit",    "address_in_use", "injected",
    "unknown"};
static_assert(std::size(kDetailNames) == kFailureDetailCount);

constexpr const char* kDispositionNames[] = {"pending",
                                             "returned_null",
                                             "threw",
                                             "served_after_purge",
                                             "served_after_handler",
                                             "served_after_new_handler",
                                             "served_by_detour"};
static_assert(std::size(kDispositionNames) == kDispositionCount);

constexpr const char* kCallNames[] = {"unknown",
                                      "malloc",
                                      "calloc",
                                      "realloc",
                                      "reallocarray",
                                      "aligned_alloc",
                                      "memalign",
                                      "posix_memalign",
                                      "valloc",
                                      "pvalloc",
                                      "operator new",
                                      "operator new[]",
                                      "operator new(nothrow)",
                                      "operator new[](nothrow)",
                                      "mallocx",
                                      "rallocx"};
static_assert(std::size(kCallNames) == kCallCount);

constexpr const char* kVmCallNames[] = {"none",    "mmap",   "munmap",
                                        "madvise", "mremap", "mprotect"};

// What the kernel refuses memory with.
struct NamedError {
  int number;
  char name[sizeof("EOVERFLOW")];
};
constexpr NamedError kErrors[] = {{EPERM, "EPERM"},   {EAGAIN, "EAGAIN"},
                                  {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},
                                  {EFAULT, "EFAULT"}, {EEXIST, "EEXIST"},
                                  {EINVAL, "EINVAL"}, {ENOSPC, "ENOSPC"},
                                  {ENOSYS, "ENOSYS"}, {EOVERFLOW, "EOVERFLOW"}};

// A number beyond the names comes from damaged memory.
template <typename Enum, std::size_t kCount>
const char* NameIn(const char* const (&names)[kCount], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kCount ? names[index] : "invalid";
}

}  // namespace

const char* FailureReasonName(FailureReason reason) {
  return NameIn(kReasonNames, reason);
}

const char* FailureDetailName(FailureDetail detail) {
  return NameIn(kDetailNames, detail);
}

const char* DispositionName(Disposition disposition) {
  return NameIn(kDispositionNames, disposition);
}

const char* CallName(Call call) { return NameIn(kCallNames, call); }

const char* VmCallName(VmCall call) { return NameIn(kVmCallNames, call); }

const char* ErrorName(int error_number) {
  for (const NamedError& error : kErrors) {
    if (error.number == error_number) return error.name;
  }
  return "";
}

}  // namespace hakmem
