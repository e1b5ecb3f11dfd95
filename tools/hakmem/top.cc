#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/top_processes.h"
#include "tools/hakmem/top_report.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(bool, once, false,
          "Prints the processes once, after the first interval, and ends.");
ABSL_FLAG(double, interval, 1, "Seconds from one look to the next.");
ABSL_FLAG(std::string, sort, "resident",
          "What the processes with most of come first: resident, live, cached, "
          "growth, calls or failures.");

namespace hakmem::tools {
namespace {

constexpr const char* kFlags[] = {"once", "json",       "interval",
                                  "sort", "symbolizer", "symbols"};
constexpr std::size_t kSites = 5;
constexpr std::string_view kKeys =
    "q quit   sort by: M resident  L live  K cached  G growth  P calls  F "
    "failures";

volatile std::sig_atomic_t g_stopped = 0;
volatile std::sig_atomic_t g_suspended = 0;

// The terminal while it is a screen: keys come one by one, and what was there
// before comes back at the end.
class Screen {
 public:
  Screen() {
    struct sigaction action = {};
    ::sigaction(SIGTSTP, nullptr, &action);
    may_stop_ = action.sa_handler != SIG_IGN;
    Take();
    action = {};
    action.sa_handler = [](int) { g_stopped = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      ::sigaction(signal, &action, nullptr);
    }
  }
  ~Screen() { GiveBack(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Ctrl-Z: until the shell has it go on. Without such a shell nothing stops.
  void Suspend() {
    g_suspended = 0;
    GiveBack();
    ::raise(SIGTSTP);
    Take();
  }

  static winsize Size() {
    winsize size = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 ||
        size.ws_col == 0) {
      size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    }
    return size;
  }

  static void Show(const winsize& size, const std::vector<std::string>& lines) {
    std::string text = "\033[H";
    const std::size_t rows = size.ws_row - 1U;
    for (std::size_t i = 0; i < std::min(rows, lines.size()); ++i) {
      absl::StrAppend(&text, Cut(lines[i], size.ws_col), "\033[K\r\n");
    }
    absl::StrAppend(&text, "\033[J\033[", size.ws_row, ";1H",
                    Cut(kKeys, size.ws_col));
    PrintOut(text);
  }

  // The next key within that time; 0: none.
  static char Key(double seconds) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char key = 0;
    if (::poll(&input, 1, static_cast<int>(seconds * 1000)) <= 0 ||
        g_suspended != 0) {
      return 0;
    }
    // The end of the input, too, ends it.
    if (::read(STDIN_FILENO, &key, 1) != 1) return 'q';
    // What an arrow or End sends behind an escape are no keys.
    char rest[16];
    const bool is_long = key == '\033' && ::poll(&input, 1, 0) > 0;
    return is_long && ::read(STDIN_FILENO, rest, sizeof(rest)) < 0 ? 'q' : key;
  }

 private:
  void Take() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    PrintOut("\033[?1049h\033[?25l");
    struct sigaction stop = {};
    stop.sa_handler = [](int) { g_suspended = 1; };
    // The next one stops the process.
    stop.sa_flags = SA_RESETHAND;
    if (may_stop_) ::sigaction(SIGTSTP, &stop, nullptr);
  }
  void GiveBack() const {
    PrintOut("\033[?25h\033[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  static std::string_view Cut(std::string_view line, std::size_t columns) {
    if (line.size() <= columns) return line;
    // Not within a character.
    while (columns > 0 && (line[columns] & 0xc0) == 0x80) --columns;
    return line.substr(0, columns);
  }

  termios before_ = {};
  bool may_stop_ = false;
};

// Where the memory of processes comes from.
class Sites {
 public:
  Sites()
      : symbols_(modules_, {absl::GetFlag(FLAGS_symbolizer),
                            absl::GetFlag(FLAGS_symbols)}) {}

  void Add(std::uint64_t pid, std::vector<TopSite>& sites) {
    const absl::StatusOr<HeapProfiles> profiles =
        ReadHeapOfProcess(absl::StrCat(pid), modules_);
    if (!profiles.ok()) return;
    HeapProfiles read = *profiles;
    std::vector<HeapSite>& all = read.last.front().sites;
    std::ranges::sort(all, std::greater<>(), [](const HeapSite& site) {
      return site.figures.live.bytes;
    });
    // No names are looked up that nobody sees.
    if (all.size() > kSites) all.resize(kSites);
    symbols_.Resolve(read);
    std::erase_if(
        all, [](const HeapSite& site) { return site.figures.live.bytes == 0; });
    std::vector<std::vector<NamedCall>> stacks;
    for (const HeapSite& site : all) {
      stacks.push_back(symbols_.Calls(site.stack));
    }
    const std::vector<std::string> places = ToldApart(stacks);
    for (std::size_t i = 0; i < all.size(); ++i) {
      sites.push_back({pid, all[i].figures.live.bytes, ForTerminal(places[i])});
    }
  }

 private:
  HeapModules modules_;
  HeapSymbols symbols_;
};

struct Options {
  std::vector<std::uint64_t> pids;
  double interval = 1;
  TopOrder order = TopOrder::kResident;
};

class Top {
 public:
  explicit Top(Options options)
      : options_(std::move(options)), processes_(options_.pids) {}

  absl::Status Look() {
    if (absl::Status status = processes_.Look(rows_); !status.ok()) {
      return status;
    }
    sites_.clear();
    for (const std::uint64_t pid : options_.pids) places_.Add(pid, sites_);
    return absl::OkStatus();
  }
  void SortBy(TopOrder order) { options_.order = order; }
  TopReport Report() {
    SortTop(options_.order, rows_);
    return {.rows = rows_,
            .sites = sites_,
            .forbidden = processes_.forbidden(),
            .order = options_.order};
  }
  double interval() const { return options_.interval; }

 private:
  Options options_;
  TopProcesses processes_;
  Sites places_;
  std::vector<TopRow> rows_;
  std::vector<TopSite> sites_;
};

absl::Status Once(Top& top, bool json) {
  absl::Status status = top.Look();
  if (!status.ok()) return status;
  std::this_thread::sleep_for(std::chrono::duration<double>(top.interval()));
  status = top.Look();
  if (!status.ok()) return status;
  TopReport report = top.Report();
  if (::isatty(STDOUT_FILENO) != 0) report.width = Screen::Size().ws_col;
  if (json) {
    PrintOut(TopAsJson(report));
    return status;
  }
  for (const std::string& line : TopLines(report)) PrintOut(line + "\n");
  return status;
}

// Until somebody ends it, or a process that was asked for has ended.
absl::Status Live(Top& top) {
  Screen screen;
  while (g_stopped == 0 && OutputError() == 0) {
    if (g_suspended != 0) screen.Suspend();
    if (absl::Status status = top.Look(); !status.ok()) return status;
    const auto next = std::chrono::steady_clock::now() +
                      std::chrono::duration<double>(top.interval());
    for (;;) {
      const winsize size = Screen::Size();
      TopReport report = top.Report();
      report.width = size.ws_col;
      Screen::Show(size, TopLines(report));
      const double left =
          std::chrono::duration<double>(next - std::chrono::steady_clock::now())
              .count();
      const char key = left <= 0 ? '\0' : Screen::Key(left);
      if (key == 'q') return absl::OkStatus();
      const std::optional<TopOrder> order = TopOrderOf(key);
      if (order) top.SortBy(*order);
      if (key == 0) break;
    }
  }
  return absl::OkStatus();
}

int RunTop(const std::vector<std::string>& arguments) {
  Options options;
  options.interval = absl::GetFlag(FLAGS_interval);
  for (const std::string& argument : arguments) {
    std::uint64_t pid = 0;
    if (!absl::SimpleAtoi(argument, &pid)) {
      return NotDone(NobodyNamed(argument));
    }
    if (std::ranges::find(options.pids, pid) == options.pids.end()) {
      options.pids.push_back(pid);
    }
  }
  if (!(options.interval >= 0.1 && options.interval <= 3600)) {
    return WrongUsage("--interval is from 0.1 to 3600 seconds");
  }
  const auto order = TopOrderNamed(absl::GetFlag(FLAGS_sort));
  if (!order) {
    return WrongUsage(
        absl::StrCat("--sort=", ForTerminal(absl::GetFlag(FLAGS_sort)),
                     ": nothing to sort by (hakmem help top)"));
  }
  options.order = *order;
  const bool json = absl::GetFlag(FLAGS_json);
  const bool once = json || absl::GetFlag(FLAGS_once) ||
                    ::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0;
  Top top(std::move(options));
  const absl::Status status = once ? Once(top, json) : Live(top);
  if (status.ok()) return 0;
  return NotDone(ForTerminal(status.message()));
}

}  // namespace

constexpr Command kTopCommand = {
    "top",
    "the processes that run on hakmem: memory, growth, calls, failures",
    "[--FLAG…] [PID|NAME…]",
    R"(
Shows the processes that run on hakmem, or those that are named, until q is
pressed; once where there is no terminal. The columns, as far as they fit:

    RESIDENT  what the process has in memory
    LIVE      what the program holds: counted of processes that are named, else
              as the heap profile estimates it; - where that has no sample
    IN USE    slabs and large blocks, with the free room in them
    CACHED    what was freed, and is kept for the next calls
    GROWTH/S  of RESIDENT
    CALLS/S   of malloc and its like
    FAILED    calls that had no memory

Keys sort by another column. Of processes that are named it also shows where
the resident memory is, and the places that hold most by the heap profile.
Processes need no option for it and are not disturbed; it takes their user, or
root.

Exit status: 0, or 1 when a process that was named could not be read or has
ended, 2 for a wrong command line.)",
    kFlags,
    RunTop,
    ProcessesNamed,
};

}  // namespace hakmem::tools
