// Children that die, for tests of what runs when a process does.
//
// Owns: where a child says something, and a page to die of. Called by: tests of
// fault_hook and the stacks at a fault. Thread-safety: one thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_TEST_DEATH_H_
#define HAKMEM_ALLOCATOR_PROCESS_TEST_DEATH_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "allocator/base/sanitizer.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/process.h"

namespace hakmem {

inline int death_output = -1;

// For the child.
inline void Say(std::string_view text) { WriteFd(death_output, text); }

struct Death {
  int signal = 0;
  std::string said;
};

// Runs `die` in a child: what that says, and the signal that ends it.
inline Death DeathOf(const std::function<void()>& die) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    death_output = pipes[1];
    die();
    _exit(0);
  }
  close(pipes[1]);
  Death death;
  char buffer[256];
  for (ssize_t got; (got = read(pipes[0], buffer, sizeof(buffer))) > 0;) {
    death.said.append(buffer, static_cast<std::size_t>(got));
  }
  close(pipes[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  death.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return death;
}

inline constexpr std::uint32_t kFaults = SignalBit(SIGSEGV) | SignalBit(SIGBUS);

// A page that nobody may touch.
inline char* Forbidden() {
  static char* const page =
      static_cast<char*>(mmap(nullptr, static_cast<std::size_t>(getpagesize()),
                              PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return page;
}

inline void WriteForbidden() {
  *static_cast<volatile char*>(Forbidden() + 5) = 1;
}

class DeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (kAddressSanitizer || kThreadSanitizer || kUndefinedBehaviorSanitizer) {
      GTEST_SKIP() << "sanitizers have handlers of their own";
    }
    Forbidden();
  }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_TEST_DEATH_H_
