// Allocates under a filter of system calls that lets through what libc's malloc
// needs, and this program itself; whoever calls another is killed. On the first
// thread's stack, on another's, on coroutines' stacks, after those, and in a
// child of either thread. Ends with "done" on stdout.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

constexpr int kAllowed[] = {
    // malloc's
    SYS_brk, SYS_clock_gettime, SYS_futex, SYS_getrandom, SYS_madvise, SYS_mmap,
    SYS_mprotect, SYS_mremap, SYS_munmap,
    // threads, children, output
    SYS_clone, SYS_clone3, SYS_exit, SYS_exit_group, SYS_rseq,
    SYS_rt_sigprocmask, SYS_set_robust_list, SYS_wait4, SYS_write,
    // locks and threads' ends
    SYS_getpid, SYS_gettid, SYS_rt_sigaction, SYS_sched_yield};

void Say(const char* text) {
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(3);
}

void Check(bool good, const char* what) {
  if (good) return;
  Say("failed: ");
  Say(what);
  _exit(1);
}

// False: the kernel has no filters.
bool SetFilter() {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : kAllowed) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Pairs of malloc and free, of 1 to 50 KB.
void Allocate(int pairs) {
  for (int i = 0; i < pairs; ++i) {
    const auto size = static_cast<size_t>(1000 + i * 7919 % 49'000);
    char* const block = static_cast<char*>(Opaque(malloc(size)));
    Check(block != nullptr, "malloc");
    block[size - 1] = 1;
    free(Opaque(block));
  }
}

ucontext_t g_outside;
ucontext_t g_coroutine;

void OnCoroutine() {
  Allocate(100);
  swapcontext(&g_coroutine, &g_outside);
}

void AllocateOnCoroutine(void* stack, size_t bytes) {
  getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = stack;
  g_coroutine.uc_stack.ss_size = bytes;
  makecontext(&g_coroutine, OnCoroutine, 0);
  swapcontext(&g_outside, &g_coroutine);
}

void AllocateInChild() {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    Allocate(1000);
    _exit(0);
  }
  int status = 1;
  Check(waitpid(child, &status, 0) == child && status == 0, "child");
}

void* AllocateEverywhere(void*) {
  Allocate(1000);
  constexpr size_t kStackBytes = 256 * 1024;
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Check(stack != MAP_FAILED, "mmap");
  AllocateOnCoroutine(stack, kStackBytes);
  munmap(stack, kStackBytes);
  Allocate(1000);
  AllocateInChild();
  return nullptr;
}

}  // namespace

int main() {
  Allocate(1);
  if (!SetFilter()) {
    Say("no filters\n");
    return 0;
  }
  AllocateEverywhere(nullptr);
  pthread_t thread;
  Check(pthread_create(&thread, nullptr, &AllocateEverywhere, nullptr) == 0,
        "pthread_create");
  pthread_join(thread, nullptr);
  Say("done\n");
  return 0;
}
