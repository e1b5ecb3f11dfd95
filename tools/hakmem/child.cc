#include "tools/hakmem/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

std::vector<int> ProcessesFrom(int process) {
  std::vector<int> all = {process};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string folder = absl::StrCat("/proc/", all[i], "/task");
    for (const std::uint64_t thread : NumbersIn(folder)) {
      std::ifstream children(absl::StrCat(folder, "/", thread, "/children"));
      for (int child = 0; children >> child;) all.push_back(child);
    }
  }
  return all;
}

namespace {

// Adds the paths of what these processes run now.
void AddProgramsOf(int process, std::set<std::string>& programs) {
  for (const int each : ProcessesFrom(process)) {
    std::error_code error;
    const std::string program = std::filesystem::read_symlink(
                                    absl::StrCat("/proc/", each, "/exe"), error)
                                    .string();
    if (!program.empty()) programs.insert(program);
  }
}

// Signals that are about this process itself, or cannot be waited for.
constexpr int kNotForwarded[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGTRAP, SIGABRT, SIGSYS, SIGPIPE};

sigset_t WaitedSignals() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int number : kNotForwarded) ::sigdelset(&set, number);
  return set;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> Start(const std::vector<std::string>& command,
                            const std::vector<std::string>& environment,
                            const sigset_t& mask) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, command[0].c_str(), nullptr, &attributes,
                     Pointers(command).data(), Pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(
        absl::StrCat("there is no program ", command[0]));
  }
  if (error != 0) {
    return absl::PermissionDeniedError(
        absl::ErrnoToStatus(error, absl::StrCat("cannot run ", command[0]))
            .message());
  }
  return child;
}

// Passes a signal on, unless the terminal has sent it: then it went to the
// child as well.
void Forward(const siginfo_t& signal, pid_t child) {
  if (signal.si_code == SI_KERNEL && signal.si_signo != SIGHUP) return;
  if (signal.si_code == SI_QUEUE) {
    ::sigqueue(child, signal.si_signo, signal.si_value);
  } else {
    ::kill(child, signal.si_signo);
  }
}

// How often what runs is looked at.
constexpr absl::Duration kFirstLook = absl::Milliseconds(10);
constexpr absl::Duration kNextLook = absl::Seconds(1);
constexpr int kPausesOfALook = 19;

// Whether the child has ended, and then how. If it was stopped, this process
// stops too, so that the shell sees it. A container's first process gets the
// orphans of all others: none of them stays.
bool Collect(pid_t child, ChildEnd& end) {
  int status = 0;
  while (true) {
    const pid_t changed = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (changed < 0 && errno == EINTR) continue;
    if (changed <= 0) return false;
    if (changed != child) continue;
    if (WIFEXITED(status)) {
      end.exit_status = WEXITSTATUS(status);
      return true;
    }
    if (WIFSIGNALED(status)) {
      end.signal = WTERMSIG(status);
      return true;
    }
    if (WIFSTOPPED(status)) ::raise(SIGSTOP);
  }
}

}  // namespace

absl::Duration PauseAfter(absl::Duration pause, absl::Duration look) {
  return std::max(std::min(2 * pause, kNextLook), kPausesOfALook * look);
}

absl::StatusOr<ChildEnd> RunChild(const std::vector<std::string>& command,
                                  const std::vector<std::string>& environment,
                                  const std::function<void(int)>& look) {
  // An ignored SIGCHLD would take the child's status away.
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, nullptr);
  const sigset_t waited = WaitedSignals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &waited, &before);
  const absl::StatusOr<pid_t> child = Start(command, environment, before);
  ChildEnd end;
  bool ended = false;
  absl::Duration pause = kFirstLook;
  while (child.ok() && !ended) {
    siginfo_t signal;
    const timespec time = absl::ToTimespec(pause);
    if (::sigtimedwait(&waited, &signal, &time) < 0) {
      if (errno != EAGAIN) continue;
      const auto begin = std::chrono::steady_clock::now();
      AddProgramsOf(*child, end.programs);
      look(*child);
      pause = PauseAfter(
          pause, absl::FromChrono(std::chrono::steady_clock::now() - begin));
    } else if (signal.si_signo == SIGCHLD) {
      ended = Collect(*child, end);
    } else {
      Forward(signal, *child);
    }
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!child.ok()) return child.status();
  end.process = *child;
  return end;
}

void EndLike(const ChildEnd& end) {
  if (end.signal == 0) std::exit(end.exit_status);
  // The program has left the core file, if there is to be one.
  const struct rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(end.signal, &by_default, nullptr);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, end.signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(end.signal);
  // A real-time signal or one that ends nothing here.
  std::exit(128 + end.signal);
}

}  // namespace hakmem::tools
