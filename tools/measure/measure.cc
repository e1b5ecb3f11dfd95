// Runs a program and writes what it took.
//
//   measure RESULT [NAME=VALUE…] -- PROGRAM [ARGUMENT…]
//
// RESULT gets one JSON object: the process id, exit status, signal, and the
// rusage of the program and all descendants it waited for. Small and without
// an allocation of its own, because Linux counts the memory of the process
// that calls exec into the peak of the program: a Python parent would hide
// every program smaller than itself. NAME=VALUE holds for the program alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kUsage = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;

// Written before handlers are installed, read by them.
pid_t g_child = 0;

// The terminal sends SIGINT and SIGQUIT to the child as well; what is sent to
// this process alone is passed on.
void Forward(int signal_number) { kill(g_child, signal_number); }
void Ignore(int /*signal_number*/) {}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) / 1e6;
}

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

[[noreturn]] void RunChild(char** settings, char** program) {
  for (; settings < program - 1; ++settings) putenv(*settings);
  execvp(program[0], program);
  const int error = errno;
  std::fprintf(stderr, "measure: %s: %s\n", program[0], std::strerror(error));
  _exit(error == ENOENT ? kNotFound : kNotExecutable);
}

bool Write(const char* path, double wall, int status, const rusage& usage) {
  FILE* const file = std::fopen(path, "we");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\"pid\": %d, \"status\": %d, \"signal\": %d, \"wall\": %.6f, "
               "\"user\": %.6f, \"system\": %.6f, \"peak_kib\": %ld, "
               "\"minor_faults\": %ld, \"major_faults\": %ld, "
               "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld}\n",
               g_child, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0, wall,
               Seconds(usage.ru_utime), Seconds(usage.ru_stime),
               usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt,
               usage.ru_nvcsw, usage.ru_nivcsw);
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  int separator = 2;
  while (separator < argc && std::strcmp(argv[separator], "--") != 0) {
    ++separator;
  }
  if (separator + 1 >= argc) {
    std::fputs(
        "usage: measure RESULT [NAME=VALUE...] -- PROGRAM [ARGUMENT...]\n",
        stderr);
    return kUsage;
  }
  const double begin = Now();
  g_child = fork();
  if (g_child < 0) {
    std::perror("measure: fork");
    return kUsage;
  }
  if (g_child == 0) RunChild(argv + 2, argv + separator + 1);
  Handle(SIGINT, Ignore);
  Handle(SIGQUIT, Ignore);
  Handle(SIGTERM, Forward);
  Handle(SIGHUP, Forward);
  int status = 0;
  rusage usage = {};
  while (wait4(g_child, &status, 0, &usage) < 0) {
    if (errno == EINTR) continue;
    std::perror("measure: wait4");
    return kUsage;
  }
  if (!Write(argv[1], Now() - begin, status, usage)) {
    std::perror("measure: cannot write the result");
    return kUsage;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status)
                           : kSignalBase + WTERMSIG(status);
}
