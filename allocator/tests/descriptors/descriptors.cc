// A heap of 16 MiB grows to 160 where no file may be opened: beside another
// thread, or on a coroutine's stack. Beside the thread large blocks are cleared
// and moved, and some are refused.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "allocator/tests/opaque.h"

namespace hakmem {
namespace {

// Not by libc's prctl, which hakmem listens to.
bool ForbidOpening() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(filter), filter};
  return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

void GrowTo(std::size_t mebibytes) {
  constexpr std::size_t kBytes = 2048;
  static void* blocks[80'000];
  const std::size_t count = mebibytes * 512;
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = memset(Opaque(malloc(kBytes)), 1, 100);
  }
  for (std::size_t i = 0; i < count; ++i) free(Opaque(blocks[i]));
}
void Grow() { GrowTo(150); }

void UseLarge() {
  for (std::size_t bytes = 1 << 20; bytes < std::size_t{1} << 29; bytes *= 3) {
    char* const block = static_cast<char*>(Opaque(malloc(bytes)));
    if (block == nullptr) continue;
    memset(block, 1, bytes / 8);
    free(Opaque(realloc(block, 2 * bytes)));
    free(Opaque(calloc(1, bytes)));
  }
}

// By limits that other calls would need a file for.
bool MeetLimits() {
  const bool too_long = Opaque(malloc(std::size_t{1} << 60)) == nullptr;
  const rlimit addresses = {1 << 20, 1 << 20};
  return too_long && setrlimit(RLIMIT_AS, &addresses) == 0 &&
         Opaque(malloc(std::size_t{1} << 30)) == nullptr;
}

void* Wait(void* /*unused*/) {
  for (;;) pause();
}

int Main(bool beside_thread) {
  // What is looked at once in a process, and on the first thread.
  GrowTo(16);
  pthread_t thread;
  if (beside_thread && pthread_create(&thread, nullptr, Wait, nullptr) != 0) {
    return 1;
  }
  if (!ForbidOpening()) {
    puts("no filters");
    return 0;
  }
  if (beside_thread) {
    Grow();
    UseLarge();
    if (!MeetLimits()) return 1;
  } else {
    static char stack[64 * 1024];
    static ucontext_t here;
    static ucontext_t coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof(stack);
    coroutine.uc_link = &here;
    makecontext(&coroutine, Grow, 0);
    swapcontext(&here, &coroutine);
  }
  puts("grown");
  fflush(stdout);
  _exit(0);
}

}  // namespace
}  // namespace hakmem

int main(int /*argc*/, char** argv) {
  return hakmem::Main(strcmp(argv[1], "thread") == 0);
}
