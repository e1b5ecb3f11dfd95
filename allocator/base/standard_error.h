// The standard error that the process started with, and waits for room there.
//
// Owns: which file that was, and how long a process that ends still waits.
// Called by: whatever says something that the program did not ask for.
// Thread-safety: NoteStandardError() at the start; the rest any thread, signal
// handlers included; nothing allocates; errno is left as it was.
//
// A program may close descriptor 2, and a file of its own gets the number. So
// who writes there asks each time whether the descriptor is still the file that
// it was at the start. Elsewhere nothing is written. Under a filter of system
// calls nobody can ask: then it is taken for what it was.
#ifndef HAKMEM_ALLOCATOR_BASE_STANDARD_ERROR_H_
#define HAKMEM_ALLOCATOR_BASE_STANDARD_ERROR_H_

#include <cstdint>

namespace hakmem {

// Which file a descriptor is open on.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// False: the descriptor is not open.
bool IdentifyFd(int fd, FileId& file);

// Whether it is open on this one.
inline bool IsFile(int fd, const FileId& file) {
  FileId now;
  return IdentifyFd(fd, now) && now == file;
}

// Once, before anything is written. Without it each file counts as noted.
void NoteStandardError();

// Before a filter of system calls comes (call_filter.h), under which nobody can
// ask.
void SettleStandardError();

// Its descriptor; -1: it was closed, or is another file by now.
int StandardError();

// The same descriptor if it can only be a log of the program's now, else -1. A
// log is a terminal, or a pipe or file that is only added to and that children
// get. For a process's last words that have no other place.
int LogInItsPlace();

// The process ends: what is written from now on waits for room. All its threads
// together make so many pauses of a thousandth of a second; the first call
// decides.
inline constexpr int kEndPauses = 1000;
void NoteEnd(int pauses = kEndPauses);

// After a write with this errno: true, after a pause, where the process ends
// and the file has no room (EAGAIN). The caller writes again.
bool AwaitRoom(int error_number);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_STANDARD_ERROR_H_
