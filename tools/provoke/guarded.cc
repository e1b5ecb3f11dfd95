#include "tools/provoke/guarded.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace hakmem::provoke {

int RunGuarded(const std::function<int()>& child,
               const std::function<void()>& restore) {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&awaited, number);
  }
  sigset_t before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    std::exit(child());
  }
  int status = -1;
  int number = 0;
  if (pid > 0) {
    sigwait(&awaited, &number);
    if (number != SIGCHLD) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  restore();
  if (number != 0 && number != SIGCHLD) kill(getpid(), number);
  // A signal that came late takes its effect here, after all.
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace hakmem::provoke
