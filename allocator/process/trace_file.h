// The file that a trace is written to: this process's alone, and still the same
// file when the program has closed or replaced the descriptor.
//
// Owns: one descriptor. Called by: the call trace. Thread-safety: the caller
// serialises. Nothing allocates; errno is left as it was; no function is a
// cancellation point.
#ifndef HAKMEM_ALLOCATOR_PROCESS_TRACE_FILE_H_
#define HAKMEM_ALLOCATOR_PROCESS_TRACE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "allocator/base/standard_error.h"

namespace hakmem {

class TraceFile {
 public:
  constexpr TraceFile() = default;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Creates `path`, from the root (mode 0600, close-on-exec), or empties it if
  // it is this user's and begins with `magic`. Returns 0 or the errno;
  // EWOULDBLOCK: another process is writing its trace to it; EEXIST: it is
  // something else.
  int Open(const char* path, std::span<const std::uint8_t> magic);
  bool is_open() const { return fd_ >= 0; }

  // Appends all of `bytes`. Returns 0 or the errno; EBADF: the program has
  // closed the descriptor, and the file is no longer at its path.
  int Append(std::span<const std::uint8_t> bytes);

  // In the child of a fork, too: the parent goes on writing.
  void Close();

 private:
  bool Reopen();

  static constexpr std::size_t kPathBytes = 512;

  int fd_ = -1;
  FileId file_;  // which it is
  char full_path_[kPathBytes] = "";
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_TRACE_FILE_H_
