// What hakmem asks of its process outside of memory: output, environment,
// identity, the end.
//
// Owns: nothing. Called by: diag, frontend.
// Thread-safety: any thread; nothing allocates; errno is left as it was.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_PROCESS_H_
#define HAKMEM_ALLOCATOR_PLATFORM_PROCESS_H_

#include <cstdint>
#include <string_view>

namespace hakmem {

// Writes all of `text`, through short writes and EINTR; gives up silently on
// any other error, because there is nobody left to tell.
void WriteFd(int fd, std::string_view text);
inline constexpr int kStderrFd = 2;

// Opens `path` for appending, creating it (mode 0644, close-on-exec); -1 on
// failure, with the errno in `error_number`.
int OpenForAppend(const char* path, int& error_number);
void CloseFd(int fd);

// Calls `visit(context, name, value)` for each environment variable whose name
// starts with `prefix`. Calls nothing in a process that runs with raised
// privileges (AT_SECURE), where the environment is not to be trusted.
using EnvironmentVisitor = void (*)(void* context, std::string_view name,
                                    const char* value);
void VisitEnvironment(std::string_view prefix, EnvironmentVisitor visit,
                      void* context);

int ProcessId();
// The kernel's thread id.
int ThreadId();
// The program's name, cut to fit: as it was started if libc knows by now, else
// as the kernel calls it.
void ProgramName(char (&name)[64]);
// The calling thread's name, terminated by NUL.
void ThreadName(char (&name)[16]);

// Ends the process by SIGABRT, whatever handler is installed; where the kernel
// spares it (process 1 of a namespace), by the exit status 134.
[[noreturn]] void AbortProcess();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_PROCESS_H_
