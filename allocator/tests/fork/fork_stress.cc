// Forks while everything else goes on that has a lock and allocates under it.
//
//   fork_stress SCENARIO FORKS
//
// It ends when so many forks were made and each child has exited with 0; if it
// does not end, something waits for itself.
#include <dlfcn.h>
#include <locale.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/tests/fork/early.h"

namespace {

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "fork_stress: %s\n", what);
  abort();
}

volatile sig_atomic_t g_handled = 0;
// This process was made by a handler, and goes on where its parent was.
volatile sig_atomic_t g_is_child = 0;
// The next fork is to be interrupted.
volatile sig_atomic_t g_interrupts = 0;

// --- What is done in parent and child ----------------------------------------

class Blocks {
 public:
  explicit Blocks(unsigned seed) : seed_(seed) {}
  ~Blocks() {
    for (char* block : blocks_) free(block);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  void Step() {
    char*& block = blocks_[rand_r(&seed_) % kCount];
    static constexpr std::size_t kSizes[] = {16,   100,   900,   3000,
                                             9000, 60000, 70000, 500000};
    const std::size_t size = kSizes[rand_r(&seed_) % 8];
    if (rand_r(&seed_) % 8 == 0) {
      char* const moved = static_cast<char*>(realloc(block, size));
      if (moved == nullptr) Fail("realloc");
      block = moved;
    } else {
      free(block);
      block = static_cast<char*>(malloc(size));
      if (block == nullptr) Fail("malloc");
    }
    memset(block, 7, size < 4096 ? size : 4096);
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }

 private:
  static constexpr unsigned kCount = 200;
  unsigned seed_;
  char* blocks_[kCount] = {};
};

void Await(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
    // It was the parent that waited.
    if (g_is_child != 0) _exit(0);
    if (errno != EINTR) Fail("waitpid");
  }
  if (status != 0) {
    fprintf(stderr, "fork_stress: a child ended with 0x%x\n",
            static_cast<unsigned>(status));
    abort();
  }
}

// The child allocates, uses streams and threads, and forks in its turn.
void ForkOnce(int depth) {
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child != 0) {
    Await(child);
    return;
  }
  {
    Blocks blocks(static_cast<unsigned>(depth));
    blocks.Steps(300);
    FILE* const file = fopen("/dev/null", "w");
    if (file == nullptr) Fail("fopen");
    fprintf(file, "%d\n", depth);
    fclose(file);
    std::thread([] { Blocks(3).Steps(100); }).join();
    if (depth != 0) ForkOnce(depth - 1);
  }
  _exit(0);
}

// --- What goes on beside
// ------------------------------------------------------

std::atomic<bool> g_stop{false};
// Made by the first thread.
std::atomic<int> g_forks{0};

void Allocate() {
  Blocks blocks(1);
  while (!g_stop) blocks.Step();
}

void AllocateUnderLock() {
  Blocks blocks(2);
  while (!g_stop) {
    pthread_mutex_lock(EarlyMutex());
    blocks.Steps(100);
    pthread_mutex_unlock(EarlyMutex());
    sched_yield();
  }
}

// Lets the thread that forks have the list of streams now and then.
void FlushAll() {
  while (!g_stop) {
    fflush(nullptr);
    sched_yield();
  }
}

// Lines so long that each is reallocated many times, and freed.
void ReadLines() {
  const std::size_t length = 300000;
  std::vector<char> text(2 * length, 'x');
  text[length - 1] = text[2 * length - 1] = '\n';
  while (!g_stop) {
    FILE* const file = fmemopen(text.data(), text.size(), "r");
    char* line = nullptr;
    std::size_t room = 0;
    while (getline(&line, &room, file) > 0) {
      free(line);
      line = nullptr;
      room = 0;
    }
    free(line);
    fclose(file);
  }
}

void PrintLines() {
  FILE* const file = fopen("/dev/null", "w");
  while (!g_stop) fprintf(file, "%*d%f\n", 9000, 1, 1e300);
  fclose(file);
}

void Load() {
  while (!g_stop) {
    void* const library = dlopen("libresolv.so.2", RTLD_NOW);
    dlerror();
    if (dlsym(RTLD_DEFAULT, "no_such_symbol") != nullptr) Fail("dlsym");
    dlerror();
    if (library != nullptr) dlclose(library);
  }
}

void LookUp() {
  while (!g_stop) {
    addrinfo* found = nullptr;
    if (getaddrinfo("localhost", "http", nullptr, &found) == 0) {
      freeaddrinfo(found);
    }
  }
}

void Localise() {
  while (!g_stop) {
    locale_t const locale = newlocale(LC_ALL_MASK, "C.UTF-8", nullptr);
    if (locale != nullptr) freelocale(locale);
    setlocale(LC_ALL, "C.UTF-8");
    setlocale(LC_ALL, "C");
  }
}

// A few for each fork.
void RegisterAtExit() {
  for (int i = 0; i < 20000 && !g_stop; ++i) {
    atexit([] {});
    while (g_forks < i / 100 && !g_stop) sched_yield();
  }
}

void StartThreads() {
  while (!g_stop) {
    std::thread([] { Blocks(5).Steps(50); }).join();
  }
}

using Threads = std::vector<std::function<void()>>;

int RunBeside(const Threads& bodies, int forks) {
  std::vector<std::thread> threads;
  for (const auto& body : bodies) threads.emplace_back(body);
  Blocks blocks(9);
  for (int i = 0; i < forks; ++i) {
    blocks.Steps(200);
    ForkOnce(i % 8 == 0 ? 2 : 0);
    ++g_forks;
  }
  g_stop = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// libc's list grows a few times in a process only, so there are many processes.
void RegisterHandlers() {
  constexpr int kHandlers = 4000;
  for (int i = 0; i < kHandlers; ++i) {
    if (pthread_atfork(nullptr, nullptr, nullptr) != 0) Fail("pthread_atfork");
  }
  g_stop = true;
}

// fork of glibc 2.36 reads its list of handlers once more after it has let go
// of the lock. If another thread has the list grow then, it reads freed memory,
// and calls address 0 where that is cleared (docs/decisions/0025).
void PassOverCallOfNull(int, siginfo_t* fault, void*) {
  if (fault->si_addr == nullptr) _exit(0);
  signal(SIGSEGV, SIG_DFL);
}

int RunRegistering(int rounds) {
  StopEarlyHandlers();
  struct sigaction action = {};
  action.sa_sigaction = &PassOverCallOfNull;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  for (int i = 0; i < rounds; ++i) {
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child != 0) {
      Await(child);
      continue;
    }
    std::thread allocating(&Allocate);
    std::thread registering(&RegisterHandlers);
    while (!g_stop) {
      const pid_t inner = fork();
      if (inner < 0) Fail("fork");
      if (inner == 0) _exit(0);
      Await(inner);
    }
    registering.join();
    allocating.join();
    _exit(0);
  }
  return 0;
}

// --- Forks in signal handlers
// --------------------------------------------------

// Every other child goes on where it was interrupted.
void ForkInHandler(int) {
  if (g_is_child != 0) return;
  const int error_number = errno;
  g_handled = g_handled + 1;
  const pid_t child = fork();
  if (child < 0) Fail("fork in a handler");
  if (child == 0) {
    if (g_handled % 2 == 0) _exit(0);
    g_is_child = 1;
  } else {
    Await(child);
  }
  errno = error_number;
}

void ForkAtAlarms() {
  StopEarlyHandlers();
  struct sigaction action = {};
  action.sa_handler = &ForkInHandler;
  sigaction(SIGALRM, &action, nullptr);
}

// Signals come from a process that does nothing else: one a round, at any
// moment of it, as many of them would keep fork from ever ending.
class Signaller {
 public:
  Signaller() {
    if (pipe(ends_) != 0) Fail("pipe");
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) Serve();
    close(ends_[0]);
  }
  Signaller(const Signaller&) = delete;
  Signaller& operator=(const Signaller&) = delete;

  // From now on the caller may be interrupted.
  void Begin() {
    const Order order = {getpid(), rand_r(&seed_) % 100'000};
    handled_ = g_handled;
    if (write(ends_[1], &order, sizeof(order)) != sizeof(order)) Fail("write");
  }
  // Until it has been.
  void End() const {
    while (g_handled == handled_) sched_yield();
  }

 private:
  struct Order {
    pid_t to;
    int turns;
  };

  [[noreturn]] void Serve() {
    close(ends_[1]);
    Order order;
    // Until nobody is left that could ask.
    while (read(ends_[0], &order, sizeof(order)) == sizeof(order)) {
      for (volatile int turn = 0; turn < order.turns;) turn = turn + 1;
      kill(order.to, SIGALRM);
    }
    _exit(0);
  }

  unsigned seed_ = 1;
  int handled_ = 0;
  int ends_[2];
};

// In children that are young, and so use a heap of their own.
int RunYoung(int forks) {
  ForkAtAlarms();
  Signaller signaller;
  Blocks blocks(4);
  blocks.Steps(1000);
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) {
      blocks.Steps(300);
      for (int round = 0; round < 10 && g_is_child == 0; ++round) {
        signaller.Begin();
        blocks.Steps(200);
        signaller.End();
      }
      blocks.Steps(200);
      _exit(0);
    }
    Await(child);
  }
  return 0;
}

int RunSignals(int forks) {
  ForkAtAlarms();
  Signaller signaller;
  Blocks blocks(4);
  while (g_handled < forks) {
    signaller.Begin();
    blocks.Steps(100);
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) {
      blocks.Steps(100);
      _exit(0);
    }
    Await(child);
    if (g_is_child != 0) _exit(0);
    signaller.End();
    if (g_is_child != 0) _exit(0);
  }
  return 0;
}

// A signal comes while fork takes the lock of the list of streams.
int RunInterrupted(int forks) {
  ForkAtAlarms();
  std::thread other([] { g_stop.wait(false); });
  const auto open = [] {
    FILE* const file = fopen("/dev/null", "r");
    if (file == nullptr) Fail("fopen");
    fclose(file);
  };
  for (int i = 0; i < forks; ++i) {
    g_interrupts = 1;
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child == 0) _exit(0);
    Await(child);
    open();
    std::thread(open).join();
    if (g_is_child != 0) _exit(0);
  }
  g_stop = true;
  g_stop.notify_all();
  other.join();
  return 0;
}

// --- A child that libc knows nothing of --------------------------------------

// In a namespace of process numbers, the second process clones itself into
// another one, as sandboxes do; the kernel gives a thread of the child its
// parent's number.
int RunCloned(int rounds) {
  // One of them would fork the first process, with which the namespace ends.
  StopEarlyHandlers();
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
    perror("not tried: no namespace of its own");
    return 0;
  }
  for (int level = 0; level < 2; ++level) {
    const pid_t child = fork();
    if (child < 0) Fail("fork");
    if (child != 0) {
      Await(child);
      _exit(0);
    }
  }
  const long child = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
  if (child > 0) Await(static_cast<pid_t>(child));
  if (child != 0) _exit(0);
  const auto allocate = [rounds] {
    for (int i = 0; i < 1000 * rounds; ++i) {
      void* volatile const block = malloc(3'000'000);
      free(block);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(allocate);
  allocate();
  for (std::thread& thread : threads) thread.join();
  _exit(0);
}

}  // namespace

// Exported by glibc, and found here first by hakmem, but not by libc itself.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void _IO_list_lock() {
  static auto* const next =
      reinterpret_cast<void (*)()>(dlsym(RTLD_NEXT, "_IO_list_lock"));
  if (next != nullptr) next();
  if (g_interrupts == 0) return;
  g_interrupts = 0;
  raise(SIGALRM);
}

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: fork_stress SCENARIO FORKS");
  const std::string_view scenario = argv[1];
  const int forks = atoi(argv[2]);
  if (scenario == "alone") return RunBeside({}, forks);
  if (scenario == "handlers") {
    // Some more that are registered late.
    const auto allocate = [] { Blocks(6).Steps(50); };
    pthread_atfork(allocate, allocate, allocate);
    return RunBeside({AllocateUnderLock, AllocateUnderLock, Allocate}, forks);
  }
  if (scenario == "streams") {
    return RunBeside({FlushAll, ReadLines, PrintLines, Allocate}, forks);
  }
  if (scenario == "libc") {
    return RunBeside({Load, LookUp, Localise, RegisterAtExit, StartThreads},
                     forks);
  }
  if (scenario == "registering") return RunRegistering(forks);
  if (scenario == "signals") return RunSignals(forks);
  if (scenario == "young") return RunYoung(forks);
  if (scenario == "interrupted") return RunInterrupted(forks);
  if (scenario == "cloned") return RunCloned(forks);
  Fail("no such scenario");
}
