// Files by number: opened, and written so that the program does not end.
//
// Owns: nothing. Called by: all above that open and write. Thread-safety: any
// thread, signal handlers included; nothing allocates; errno is left as it was;
// no cancellation point.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_WRITE_ONCE_H_
#define HAKMEM_ALLOCATOR_PLATFORM_WRITE_ONCE_H_

#include <cstddef>
#include <string_view>

namespace hakmem {

// Opens a file, close-on-exec and as nobody's terminal; -1 on failure, with the
// errno in `error_number`. With O_NONBLOCK a named pipe in its place is not
// waited for.
int OpenFile(const char* path, int flags, unsigned mode, int& error_number);

// One write(2), tried again only after a signal. Returns the bytes written; on
// any error 0, with the errno in `error_number`. Where nobody reads, no SIGPIPE
// comes; where the file may not get longer, no SIGXFSZ.
std::size_t WriteOnce(int fd, std::string_view text, int& error_number);
inline std::size_t WriteOnce(int fd, std::string_view text) {
  int ignored = 0;
  return WriteOnce(fd, text, ignored);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_WRITE_ONCE_H_
