// The process outside of its memory: output, environment,
// identity, the end.
//
// Owns: nothing. Called by: core, frontend, the rooms beside them.
// Thread-safety: any thread; nothing allocates; errno is left as it was.
#ifndef HAKMEM_ALLOCATOR_PROCESS_PROCESS_H_
#define HAKMEM_ALLOCATOR_PROCESS_PROCESS_H_

#include <cstdint>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/base/standard_error.h"  // IWYU pragma: export

namespace hakmem {

// Writes all of `text`, through short writes and EINTR, and waits for room as
// AwaitRoom does; gives up silently on any other error, because there is nobody
// left to tell. Where nobody reads, no SIGPIPE comes.
void WriteFd(int fd, std::string_view text);
// The same for who can tell: 0, or the errno.
int TryWriteFd(int fd, std::string_view text);

// A sink that does so, and keeps the first errno.
struct FdSink {
  explicit FdSink(int to) : fd(to) {}
  LineSink sink() { return {.write = &Write, .context = this}; }

  int fd;
  int error_number = 0;

 private:
  static bool Write(void* context, std::string_view lines);
};

// Readers of a file that is created: addresses are not for everybody.
enum class FileReaders : std::uint16_t { kOwner = 0600, kAll = 0644 };

// Opens `path` for appending, creating it (close-on-exec); -1 on failure, with
// the errno in `error_number`. A symbolic link is not followed (ELOOP): who can
// write to the folder must not choose the file.
int OpenForAppend(const char* path, FileReaders readers, int& error_number);
// The same, to be read by the owner; a named pipe that nobody reads is not
// waited for (ENXIO).
int OpenForReport(const char* path, int& error_number);
void CloseFd(int fd);

// Ends a warning with the process (base/line_end.h), and writes it to standard
// error. The latter is for small stacks; its text has no newline.
void WriteWarning(RawPrinter& line);
void WriteWarning(std::string_view text);

// "No such file or directory".
const char* ErrorWords(int error_number);

// Calls `visit(context, name, value)` for each environment variable whose name
// starts with `prefix`. Calls nothing in a process that runs with raised
// privileges (AT_SECURE), where the environment is not to be trusted.
using EnvironmentVisitor = void (*)(void* context, std::string_view name,
                                    const char* value);
void VisitEnvironment(std::string_view prefix, EnvironmentVisitor visit,
                      void* context);

int ProcessId();
// The kernel's number, or libc's record where the kernel refuses to tell. 0:
// not known.
int ThreadId();
// The same for what is only written down; 0 where a filter of system calls may
// refuse to tell.
int KnownThreadId();
// Sends `signal` to the calling thread.
void SignalThread(int signal);
// The file that was started, without its folder. Programs write what they do
// over their arguments, and with them over libc's name; the kernel's stays.
// Where the kernel knows a link of /proc alone, libc's name, if it has one by
// now.
const char* ProgramName();
// The calling thread's name, terminated by NUL.
void ThreadName(char (&name)[16]);

// Ends the process by SIGABRT, whatever handler is installed; where the kernel
// spares it (process 1 of a namespace), by the exit status 134. In strict mode
// (base/system_call.h) by a trap, which may come to a handler.
[[noreturn]] void AbortProcess();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_PROCESS_H_
