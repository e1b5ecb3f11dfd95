// Ends in the way that its argument names. Standard error is a full pipe that
// is not waited for, and standard input its other end. Where hakmem waits for
// room, by a call that a filter traps, the program makes room and says "room".
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

// In place of the call, which so takes no time.
void MakeRoom(int) {
  char buffer[4096];
  while (read(STDIN_FILENO, buffer, sizeof(buffer)) > 0) {
  }
  (void)!write(STDOUT_FILENO, "room\n", 5);
}

// Not by prctl, which would tell hakmem of a filter.
bool TrapPauses() {
  struct sigaction action = {};
  action.sa_handler = &MakeRoom;
  sigaction(SIGSYS, &action, nullptr);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT_PRIVATE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(filter), filter};
  return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

struct Way {
  const char* name;
  void (*end)();
};

const Way kWays[] = {
    {"exit", [] {}},
    {"signal", [] { raise(SIGTERM); }},
    {"crash",
     [] { *Opaque(reinterpret_cast<volatile char*>(sizeof(int))) = 1; }},
    {"new",
     [] {
       const auto operator_new = reinterpret_cast<void* (*)(std::size_t)>(
           dlsym(RTLD_DEFAULT, "_Znwm"));
       Opaque(operator_new(std::size_t{1} << 63));
     }},
    // Ends in no such way: its report is lost.
    {"misuse",
     [] {
       void* const block = Opaque(malloc(100));
       free(block);
       free(Opaque(block));
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (!TrapPauses()) {
    puts("no filters");
    return 0;
  }
  for (const Way& way : kWays) {
    if (argc == 2 && strcmp(argv[1], way.name) == 0) way.end();
  }
}
