// Preloaded into programs that run out of memory on purpose: when one dies of
// a bad access, says which files the calls on the stack are in, innermost
// first.
//
//   crash_site: signal 11 in /usr/bin/sqlite3 /usr/bin/sqlite3 /lib/…/libc.so.6
//
// A program that installs a handler of its own is left to it.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace hakmem::provoke {
namespace {

struct Line {
  char text[4096];
  std::size_t length;
  int frame;
};

_Unwind_Reason_Code AddFrame(_Unwind_Context* context, void* argument) {
  // This file's handler and the kernel's trampoline.
  constexpr int kOwnFrames = 2;
  Line& line = *static_cast<Line*>(argument);
  if (line.frame++ < kOwnFrames) return _URC_NO_REASON;
  Dl_info info = {};
  const auto at = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  const bool found = dladdr(reinterpret_cast<void*>(at), &info) != 0;
  const char* const file = found ? info.dli_fname : "nowhere";
  const std::size_t length = std::strlen(file);
  if (line.length + length + 2 > sizeof(line.text)) return _URC_END_OF_STACK;
  line.text[line.length++] = ' ';
  std::memcpy(line.text + line.length, file, length);
  line.length += length;
  return _URC_NO_REASON;
}

void Report(int number) {
  static Line line;
  line.length = static_cast<std::size_t>(std::snprintf(
      line.text, sizeof(line.text), "crash_site: signal %d in", number));
  _Unwind_Backtrace(AddFrame, &line);
  line.text[line.length++] = '\n';
  if (write(STDERR_FILENO, line.text, line.length) < 0) _exit(1);
  // The handler is gone (SA_RESETHAND): the same access ends the process.
}

[[gnu::constructor]] void Install() {
  struct sigaction action = {};
  action.sa_handler = Report;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    sigaction(number, &action, nullptr);
  }
}

}  // namespace
}  // namespace hakmem::provoke
