// Allocates under a filter of system calls. FILTER is
//   service   systemd's SystemCallFilter=@system-service, from the start on
//   later     the same, but set up by the program when it has allocated
//   memory    what memory, threads and output need, set up when it has
//             allocated; all else is refused
//   malloc    what libc's malloc and this program need, set up when it has
//             allocated; whoever calls another is killed
//   start     the same, from the start on, with what libc's start calls; files
//             can be read
//   strict    the kernel's strict mode, set up when it has allocated: small
//             blocks alone, from memory that is there
//   thread    likewise, by a thread that ends; others are served as ever
//   idle      from the start on, memory that is given back stays as it is:
//             the kernel takes the advice and does nothing
//   opened    getpid kills, and WORK is the path of a library, which a second
//             thread opens
//   none
// and WORK is `serve` or `double_free`. Ends with "done" on stdout.
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

constexpr std::size_t kAddressBytes = std::size_t{16} << 30;

// What @system-service of systemd 252 leaves out, of what Linux 6.1 has on both
// x86-64 and aarch64. Whoever calls one is killed.
constexpr int kNoService[] = {SYS_acct,
                              SYS_adjtimex,
                              SYS_bpf,
                              SYS_chroot,
                              SYS_clock_adjtime,
                              SYS_clock_settime,
                              SYS_delete_module,
                              SYS_fanotify_init,
                              SYS_fanotify_mark,
                              SYS_finit_module,
                              SYS_fsconfig,
                              SYS_fsmount,
                              SYS_fsopen,
                              SYS_fspick,
                              SYS_init_module,
                              SYS_kexec_load,
                              SYS_lookup_dcookie,
                              SYS_mincore,
                              SYS_mount,
                              SYS_move_mount,
                              SYS_nfsservctl,
                              SYS_open_by_handle_at,
                              SYS_open_tree,
                              SYS_perf_event_open,
                              SYS_pidfd_getfd,
                              SYS_pivot_root,
                              SYS_pkey_alloc,
                              SYS_pkey_free,
                              SYS_pkey_mprotect,
                              SYS_ptrace,
                              SYS_quotactl,
                              SYS_reboot,
                              SYS_seccomp,
                              SYS_setdomainname,
                              SYS_sethostname,
                              SYS_settimeofday,
                              SYS_swapoff,
                              SYS_swapon,
                              SYS_syslog,
                              SYS_umount2,
                              SYS_vhangup};

// What a program may leave itself that has opened all that it needs. Whatever
// else is called fails.
constexpr int kMemory[] = {
    SYS_brk,          SYS_clock_gettime, SYS_clone,
    SYS_clone3,       SYS_close,         SYS_exit,
    SYS_exit_group,   SYS_futex,         SYS_getpid,
    SYS_getrandom,    SYS_gettid,        SYS_madvise,
    SYS_mmap,         SYS_mprotect,      SYS_mremap,
    SYS_munmap,       SYS_nanosleep,     SYS_read,
    SYS_rseq,         SYS_rt_sigaction,  SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_sched_yield,   SYS_set_robust_list,
    SYS_tgkill,       SYS_wait4,         SYS_write};

// The calls of docs/system_calls.md that each variant may make when it has
// started, and nothing was asked of it: those of glibc's malloc.
constexpr int kMalloc[] = {SYS_brk,       SYS_clock_gettime, SYS_futex,
                           SYS_getrandom, SYS_madvise,       SYS_mmap,
                           SYS_mprotect,  SYS_mremap,        SYS_munmap};

// What this program calls itself, by way of libc: threads, a child, output.
constexpr int kProgram[] = {
    SYS_clone,          SYS_clone3,       SYS_exit,
    SYS_exit_group,     SYS_rseq,         SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_set_robust_list,
    SYS_wait4,          SYS_write};

// x86-64's loader makes them; elsewhere these numbers are of calls that nobody
// makes here.
constexpr int kAccess = 21;
constexpr int kArchPrctl = 158;

// What the start of a program calls: the kernel, the loader and libc of this
// time.
constexpr int kStart[] = {
    kAccess,       kArchPrctl,          SYS_close,  SYS_execve,
    SYS_faccessat, SYS_newfstatat,      SYS_openat, SYS_pread64,
    SYS_prlimit64, SYS_set_tid_address, SYS_read};

void Set(std::vector<sock_filter>& filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    puts("no filters");
    exit(0);
  }
}

void SetFilter(std::span<const int> calls, std::uint32_t listed,
               std::uint32_t others) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, listed));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, others));
  Set(filter);
}

void SetMallocFilter(bool at_start) {
  // So that the kernel will refuse the last of what this program asks for.
  const rlimit addresses = {kAddressBytes, kAddressBytes};
  setrlimit(RLIMIT_AS, &addresses);
  std::vector<int> calls(std::begin(kMalloc), std::end(kMalloc));
  calls.insert(calls.end(), std::begin(kProgram), std::end(kProgram));
  if (at_start) calls.insert(calls.end(), std::begin(kStart), std::end(kStart));
  SetFilter(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
}

void SetIdleFilter() {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  Set(filter);
}

void SetServiceFilter() {
  SetFilter(kNoService, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
}

void Check(bool good, const char* what) {
  if (good) return;
  printf("failed: %s\n", what);
  exit(1);
}

// Blocks of every route, that hold data, are freed, and come back clear.
void Serve() {
  for (const std::size_t size :
       {60ul, 5000ul, 100'000ul, 1'000'000ul, 20'000'000ul, 300'000'000ul}) {
    constexpr int kBlocks = 8;
    char* blocks[kBlocks];
    for (int round = 0; round < 3; ++round) {
      for (char*& block : blocks) {
        block = static_cast<char*>(Opaque(malloc(size)));
        Check(block != nullptr, "malloc");
        block[0] = block[size / 2] = block[size - 1] = 'x';
      }
      for (char*& block : blocks) {
        block = static_cast<char*>(Opaque(realloc(block, size + size / 2)));
        Check(block != nullptr && block[size / 2] == 'x', "realloc");
        free(Opaque(block));
      }
      for (char*& block : blocks) {
        block = static_cast<char*>(Opaque(calloc(1, size)));
        Check(block != nullptr && block[0] == 0 && block[size / 2] == 0 &&
                  block[size - 1] == 0,
              "calloc");
        memset(block, 'y', size < 100'000 ? size : 4096);
      }
      for (char* block : blocks) free(Opaque(block));
    }
  }
}

// So much, in small blocks, that a zone may ask for huge pages.
void Grow() {
  std::vector<void*> blocks(300'000);
  for (void*& block : blocks) block = memset(Opaque(malloc(100)), 'z', 100);
  for (void* block : blocks) free(Opaque(block));
}

// On pages of the stack of which nobody has asked before.
[[gnu::noinline]] void ServeDeeper() {
  char deeper[200'000];
  memset(Opaque(deeper), 0, sizeof(deeper));
  static void* blocks[10'000];
  for (int round = 0; round < 100; ++round) {
    for (void*& block : blocks) block = memset(Opaque(malloc(100)), 'z', 100);
    for (void* block : blocks) free(Opaque(block));
  }
}

// Blocks of every route, for ServeStrictly to change and free.
std::vector<char*> Keep() {
  std::vector<char*> blocks;
  for (std::size_t size = 16; size <= 300'000'000; size += size / 2) {
    const std::size_t count = size < 5000 ? 5'000 : size < 400'000 ? 100 : 4;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(static_cast<char*>(Opaque(malloc(size))));
      blocks.back()[0] = 'x';
    }
  }
  return blocks;
}

void FreeTwice() {
  void* const block = Opaque(malloc(100));
  free(Opaque(block));
  free(Opaque(block));
}

// Strict mode leaves read, write and exit. All that can be is served from
// memory that is there, what cannot be is refused, and nothing kills.
bool ServeStrictly() {
  Grow();
  const std::vector<char*> kept = Keep();
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
    puts("no filters");
    exit(0);
  }
  ServeDeeper();
  bool is_good = Opaque(malloc(kAddressBytes)) == nullptr && errno == ENOMEM;
  // Where blocks grow and shrink, pages move and go back.
  for (std::size_t i = 0; i < kept.size(); ++i) {
    void* const block = Opaque(kept[i]);
    const std::size_t size = malloc_usable_size(block);
    void* const other = realloc(block, i % 2 == 0 ? size * 2 : size / 2);
    is_good = is_good && *static_cast<char*>(other ? other : block) == 'x';
    free(Opaque(other ? other : block));
  }
  malloc_trim(0);
  ServeDeeper();
  return is_good;
}

// exit() would end all threads, by a call that strict mode does not have.
[[noreturn]] void EndStrictly(bool is_good) {
  for (;;) syscall(SYS_exit, is_good ? 0 : 1);
}

// Strict mode is a thread's own, and ends with it: by a call, as libc's end of
// a thread would be killed.
void ServeInStrictThread(bool misuses) {
  static bool is_served = false;
  static bool is_misuser = false;
  is_misuser = misuses;
  pthread_t thread;
  Check(pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
              is_served = ServeStrictly();
              if (is_misuser) FreeTwice();
              EndStrictly(true);
            },
            nullptr) == 0,
        "pthread_create");
  pthread_join(thread, nullptr);
  Check(is_served, "a strict thread");
}

void InThreads(bool are_refused) {
  pthread_t threads[4];
  static bool refused;
  refused = are_refused;
  for (pthread_t& thread : threads) {
    Check(pthread_create(
              &thread, nullptr,
              [](void*) -> void* {
                Serve();
                Check(!refused || Opaque(malloc(2 * kAddressBytes)) == nullptr,
                      "a refusal beside threads");
                return nullptr;
              },
              nullptr) == 0,
          "pthread_create");
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void InChild() {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    Serve();
    _exit(0);
  }
  int status = 1;
  Check(waitpid(child, &status, 0) == child && status == 0, "child");
}

void OpenInThread(char* library) {
  constexpr int kGetpid[] = {SYS_getpid};
  SetFilter(kGetpid, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
  pthread_t thread;
  Check(
      pthread_create(
          &thread, nullptr,
          [](void* path) { return dlopen(static_cast<char*>(path), RTLD_NOW); },
          library) == 0,
      "pthread_create");
  void* opened = nullptr;
  pthread_join(thread, &opened);
  Check(opened != nullptr, dlerror());
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc >= 3, "arguments");
  const char* const filter = argv[1];
  if (strcmp(filter, "opened") == 0) {
    OpenInThread(argv[2]);
    return write(STDOUT_FILENO, "done\n", 5) == 5 ? 0 : 1;
  }
  const bool is_start = strcmp(filter, "start") == 0;
  if ((is_start || strcmp(filter, "service") == 0 ||
       strcmp(filter, "idle") == 0) &&
      argc == 3) {
    if (is_start) {
      SetMallocFilter(/*at_start=*/true);
    } else {
      *filter == 's' ? SetServiceFilter() : SetIdleFilter();
    }
    char again[] = "again";
    char* const arguments[] = {argv[0], argv[1], argv[2], again, nullptr};
    execv(argv[0], arguments);
    Check(false, "execv");
  }
  if (strcmp(filter, "strict") == 0) {
    EndStrictly(ServeStrictly() && write(STDOUT_FILENO, "done\n", 5) == 5);
  }
  const bool misuses = strcmp(argv[2], "double_free") == 0;
  if (strcmp(filter, "thread") == 0) ServeInStrictThread(misuses);
  if (strcmp(filter, "later") == 0 || strcmp(filter, "memory") == 0 ||
      strcmp(filter, "malloc") == 0) {
    Serve();
    if (*filter == 'l') {
      SetServiceFilter();
    } else if (strcmp(filter, "malloc") == 0) {
      SetMallocFilter(/*at_start=*/false);
    } else {
      SetFilter(kMemory, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
    }
  }
  Serve();
  Grow();
  if (is_start || strcmp(filter, "malloc") == 0) {
    Check(Opaque(malloc(2 * kAddressBytes)) == nullptr, "a refusal");
  }
  InThreads(is_start || strcmp(filter, "malloc") == 0);
  InChild();
  if (misuses) FreeTwice();
  return write(STDOUT_FILENO, "done\n", 5) == 5 ? 0 : 1;
}
