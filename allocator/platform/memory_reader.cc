#include "allocator/platform/memory_reader.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "allocator/base/call_filter.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {

MemoryReader::~MemoryReader() {
  if (fd_ >= 0) SystemCall(SYS_close, fd_);
}

bool MemoryReader::Read(std::uintptr_t address, void* to, std::size_t bytes) {
  const std::uintptr_t offset = address - mapped_begin_;
  if (offset < mapped_bytes_ && bytes <= mapped_bytes_ - offset) {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
    return true;
  }
  if (!by_kernel_ || IsFilterNoted()) return false;
  if (!by_file_) {
    const iovec local = {to, bytes};
    const iovec remote = {reinterpret_cast<void*>(address), bytes};
    // Not the process's number, its first thread's: that may have ended.
    if (thread_ == 0) thread_ = SystemCall(SYS_gettid);
    const long got =
        SystemCall(SYS_process_vm_readv, thread_, &local, 1, &remote, 1);
    if (got >= 0) return static_cast<std::size_t>(got) == bytes;
    if (got == -EFAULT) return false;
    // Containers' older seccomp filters say EPERM, kernels without it ENOSYS.
    by_file_ = true;
    int error_number = 0;
    fd_ = ProcReader().Open("/proc/thread-self/mem", error_number);
  }
  return ReadFromFile(address, to, bytes);
}

bool MemoryReader::ReadFromFile(std::uintptr_t address, void* to,
                                std::size_t bytes) {
  if (fd_ < 0) return false;
  const long got = SystemCall(SYS_pread64, fd_, to, bytes, address);
  return got >= 0 && static_cast<std::size_t>(got) == bytes;
}

bool MemoryReader::ReadText(std::uintptr_t address, char* to,
                            std::size_t capacity) {
  std::size_t length = 0;
  while (length + 1 < capacity) {
    const std::uintptr_t from = address + length;
    const std::size_t page_rest =
        kSmallestPageBytes - from % kSmallestPageBytes;
    std::size_t bytes = capacity - 1 - length;
    if (bytes > page_rest) bytes = page_rest;
    if (!Read(from, to + length, bytes)) return false;
    if (std::memchr(to + length, '\0', bytes) != nullptr) return true;
    length += bytes;
  }
  to[length] = '\0';
  return true;
}

}  // namespace hakmem
