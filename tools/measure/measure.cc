// Runs a program and writes what it took.
//
//   measure RESULT [--count=NAME:TYPE:CONFIG]… [NAME=VALUE…] --
//       PROGRAM [ARGUMENT…]
//
// RESULT gets one JSON object: the process id, exit status, signal, and the
// rusage of the program and all descendants it waited for. Small and without
// an allocation of its own, because Linux counts the memory of the process
// that calls exec into the peak of the program: a Python parent would hide
// every program smaller than itself. NAME=VALUE holds for the program alone.
//
// TYPE and CONFIG are those of perf_event_open(2), in decimal. Such an event is
// counted outside of the kernel, in the program and all its descendants, and
// "counters" of RESULT has it by NAME; one that cannot be counted here is left
// out.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kUsage = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;
constexpr char kCountOption[] = "--count=";
constexpr int kMostEvents = 16;
constexpr int kMostName = 31;

struct Event {
  char name[kMostName + 1];
  int descriptor;
};

struct Events {
  Event each[kMostEvents];
  int count = 0;
};

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

bool HasPrefix(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// False if `text` is not NAME:TYPE:CONFIG. The event is this process's, which
// does not count it; the child inherits it, and counts from exec on.
bool Open(const char* text, Events& events) {
  Event event = {};
  perf_event_attr attributes = {};
  std::uint32_t type;
  std::uint64_t config;
  int end = 0;
  if (events.count == kMostEvents ||
      std::sscanf(text, "%31[a-z0-9_]:%" SCNu32 ":%" SCNu64 "%n", event.name,
                  &type, &config, &end) != 3 ||
      text[end] != '\0') {
    return false;
  }
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  attributes.read_format =
      PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.disabled = 1;
  attributes.enable_on_exec = 1;
  attributes.inherit = 1;
  // Who may count at all may count this.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  event.descriptor = static_cast<int>(syscall(SYS_perf_event_open, &attributes,
                                              0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (event.descriptor >= 0) events.each[events.count++] = event;
  return true;
}

void WriteCounters(FILE* file, const Events& events) {
  std::fputs("{", file);
  const char* separator = "";
  for (int i = 0; i < events.count; ++i) {
    struct {
      std::uint64_t value, enabled, running;
    } count;
    if (read(events.each[i].descriptor, &count, sizeof(count)) !=
            sizeof(count) ||
        count.running == 0) {
      continue;
    }
    // Where there are more events than counters the kernel lets them take
    // turns.
    std::fprintf(file, "%s\"%s\": %.0f", separator, events.each[i].name,
                 static_cast<double>(count.value) *
                     static_cast<double>(count.enabled) /
                     static_cast<double>(count.running));
    separator = ", ";
  }
  std::fputs("}", file);
}

bool Write(const char* path, double wall, int status, const rusage& usage,
           const Events& events) {
  FILE* const file = std::fopen(path, "we");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\"pid\": %d, \"status\": %d, \"signal\": %d, \"wall\": %.6f, "
               "\"user\": %.6f, \"system\": %.6f, \"peak_kib\": %ld, "
               "\"minor_faults\": %ld, \"major_faults\": %ld, "
               "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld, "
               "\"counters\": ",
               g_child, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0, wall,
               Seconds(usage.ru_utime), Seconds(usage.ru_stime),
               usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt,
               usage.ru_nvcsw, usage.ru_nivcsw);
  WriteCounters(file, events);
  std::fputs("}\n", file);
  return std::fclose(file) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Events events;
  int settings = 2;
  bool good = true;
  for (; settings < argc && HasPrefix(argv[settings], kCountOption);
       ++settings) {
    good &= Open(argv[settings] + std::strlen(kCountOption), events);
  }
  int separator = settings;
  while (separator < argc && std::strcmp(argv[separator], "--") != 0) {
    ++separator;
  }
  if (!good || separator + 1 >= argc) {
    std::fputs(
        "usage: measure RESULT [--count=NAME:TYPE:CONFIG...] [NAME=VALUE...] "
        "-- PROGRAM [ARGUMENT...]\n",
        stderr);
    return kUsage;
  }
  const double begin = Now();
  g_child = fork();
  if (g_child < 0) {
    std::perror("measure: fork");
    return kUsage;
  }
  if (g_child == 0) RunChild(argv + settings, argv + separator + 1);
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
  if (!Write(argv[1], Now() - begin, status, usage, events)) {
    std::perror("measure: cannot write the result");
    return kUsage;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status)
                           : kSignalBase + WTERMSIG(status);
}
