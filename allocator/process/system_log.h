// Text for the system's log, without syslog(3), which allocates and locks.
//
// Owns: nothing. Called by: reports. Thread-safety: any thread, signal handlers
// included; nothing allocates; errno is left as it was; no function is a
// cancellation point.
#ifndef HAKMEM_ALLOCATOR_PROCESS_SYSTEM_LOG_H_
#define HAKMEM_ALLOCATOR_PROCESS_SYSTEM_LOG_H_

#include <string_view>

namespace hakmem {

// Where the log's daemon listens.
inline constexpr char kSystemLogSocket[] = "/dev/log";

// Sends each line of `text` as a critical message of a user's program, under
// hakmem's name and this process's id (RFC 3164 without a time, which the
// daemon adds). Returns 0 or the errno of what failed: then no line, or not
// every line, arrived.
int SendToSystemLog(const char* socket_path, std::string_view text);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_SYSTEM_LOG_H_
