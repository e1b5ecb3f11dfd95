#include "allocator/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "allocator/base/line_end.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/auxiliary_vector.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/platform/start_filter.h"
#include "allocator/platform/write_once.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/signals.h"

namespace hakmem {

int TryWriteFd(int fd, std::string_view text) {
  while (!text.empty()) {
    int error_number = 0;
    const std::size_t written = WriteOnce(fd, text, error_number);
    if (written == 0 && !AwaitRoom(error_number)) return error_number;
    text.remove_prefix(written);
  }
  return 0;
}

void WriteFd(int fd, std::string_view text) { TryWriteFd(fd, text); }

bool FdSink::Write(void* context, std::string_view lines) {
  FdSink& self = *static_cast<FdSink*>(context);
  if (self.error_number == 0) self.error_number = TryWriteFd(self.fd, lines);
  return self.error_number == 0;
}

void WriteWarning(RawPrinter& line) {
  WriteFd(StandardError(), line.Plain().Text(LineEnd().text()).text());
}

void WriteWarning(std::string_view text) {
  const int fd = StandardError();
  WriteFd(fd, text);
  WriteFd(fd, LineEnd().text());
}

constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW;

int OpenForAppend(const char* path, FileReaders readers, int& error_number) {
  return OpenFile(path, kAppend, static_cast<unsigned>(readers), error_number);
}

int OpenForReport(const char* path, int& error_number) {
  const int fd = OpenFile(path, kAppend | O_NONBLOCK, 0600, error_number);
  // What is written waits for a reader that is slow.
  if (fd >= 0) SystemCall(SYS_fcntl, fd, F_SETFL, O_APPEND);
  return fd;
}

void CloseFd(int fd) { SystemCall(SYS_close, fd); }

const char* ErrorWords(int error_number) {
  if (error_number == ELOOP) return "it is a symbolic link";
  // A constant of libc's: no locale, no buffer.
#if defined(__GLIBC__)
  const char* const words = strerrordesc_np(error_number);
#else
  const char* const words = strerror(error_number);
#endif
  return words != nullptr ? words : "unknown error";
}

namespace {

// A program's functions in .preinit_array run before libc knows it.
char** Environment() {
  return environ == nullptr ? FirstEnvironment() : environ;
}

}  // namespace

void VisitEnvironment(std::string_view prefix, EnvironmentVisitor visit,
                      void* context) {
  char** const environment = Environment();
  if (environment == nullptr || AuxiliaryValue(AT_SECURE) != 0) return;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, prefix.data(), prefix.size()) != 0) continue;
    const char* const equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    visit(context, {*entry, static_cast<std::size_t>(equals - *entry)},
          equals + 1);
  }
}

int ProcessId() { return static_cast<int>(SystemCall(SYS_getpid)); }

// Asked of the kernel: in a child of vfork musl's gettid is the parent's.
int ThreadId() {
  const long id = SystemCall(SYS_gettid);
  return id > 0 ? static_cast<int>(id) : RecordedThreadId();
}

int KnownThreadId() { return IsFiltered() ? RecordedThreadId() : ThreadId(); }

void SignalThread(int signal) {
  SystemCall(SYS_tgkill, ProcessId(), ThreadId(), signal);
}

const char* ProgramName() {
  const auto path = reinterpret_cast<const char*>(AuxiliaryValue(AT_EXECFN));
  if (path == nullptr) return program_invocation_short_name;
  // Of a program that started itself anew, or was started by a descriptor.
  const bool is_link = std::strncmp(path, "/proc/", 6) == 0 ||
                       std::strncmp(path, "/dev/fd/", 8) == 0;
  if (is_link && *program_invocation_short_name != '\0') {
    return program_invocation_short_name;
  }
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void ThreadName(char (&name)[16]) {
  name[0] = '\0';
  SystemCall(SYS_prctl, PR_GET_NAME, name);
}

void AbortProcess() {
  RunCrashHooks({.signal = SIGABRT, .place = {}});
  // It has no call that ends more than the thread.
  if (t_is_strict) __builtin_trap();
  // Another thread may install its handler in between; so more than once.
  for (int attempts = 0; attempts < 3; ++attempts) {
    SetDefaultAction(SIGABRT);
    UnblockSignal(SIGABRT);
    SignalThread(SIGABRT);
  }
  // The first process of a container is immune to its own signals.
  for (;;) SystemCall(SYS_exit_group, 128 + SIGABRT);
}

}  // namespace hakmem
