#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/end_signals.h"
#include "tools/hakmem/http_server.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/serve_answers.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:4256",
          "The address and port to answer at; port 0 is any.");
ABSL_FLAG(std::string, unix, "",
          "Answers at a Unix socket of this path instead, for its owner and "
          "group.");
ABSL_FLAG(std::string, token_file, "",
          "Answers only who knows the token in this file: Authorization: "
          "Bearer TOKEN.");
ABSL_FLAG(unsigned, most, 200,
          "So many processes have metrics, those of which most is resident; "
          "the others are counted.");

namespace hakmem::tools {
namespace {

constexpr const char* kFlags[] = {"listen", "unix", "token_file", "most"};
constexpr absl::Duration kBetweenLooks = absl::Minutes(1);

// "HOST:PORT" or "[HOST]:PORT".
bool ParseAddress(const std::string& text, HttpServer::Options& options) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &options.port) ||
      options.port < 0 || options.port > 65535) {
    return false;
  }
  options.host = text.substr(0, colon);
  if (options.host.starts_with('[') && options.host.ends_with(']')) {
    options.host = options.host.substr(1, options.host.size() - 2);
    return true;
  }
  return options.host.find(':') == std::string::npos;
}

// Its first line. The error is a sentence.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no token in ", ForTerminal(path)));
  }
  return token;
}

// Of what root may do, reading is what is left: other processes, and files for
// their names. For this thread and those that it starts.
void DropPrivileges() {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  constexpr std::uint64_t kKept = std::uint64_t{1} << CAP_SYS_PTRACE |
                                  std::uint64_t{1} << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return;
  for (unsigned i = 0; i < 2; ++i) {
    const auto kept = static_cast<std::uint32_t>(kKept >> (32 * i));
    sets[i].permitted &= kept;
    sets[i].effective &= kept;
    sets[i].inheritable &= kept;
  }
  ::syscall(SYS_capset, &header, sets);
}

// False: it has been said why not.
bool ReadOptions(HttpServer::Options& options) {
  options.socket_path = absl::GetFlag(FLAGS_unix);
  if (const std::string path = absl::GetFlag(FLAGS_token_file); !path.empty()) {
    absl::StatusOr<std::string> token = ReadToken(path);
    if (!Succeeded(token.status())) return false;
    options.token = *std::move(token);
  } else if (options.socket_path.empty() && !IsLoopback(options.host)) {
    Complain(
        "whoever reaches this address may read all that there is: "
        "--token-file=FILE");
  }
  return true;
}

int Serve(const std::vector<std::string>& arguments) {
  HttpServer::Options options;
  if (!arguments.empty() ||
      !ParseAddress(absl::GetFlag(FLAGS_listen), options)) {
    return WrongUsage(
        "--listen is HOST:PORT, and there are no arguments (hakmem help "
        "serve)");
  }
  if (!ReadOptions(options)) return kNotDone;
  const EndSignals signals({SIGINT, SIGTERM, SIGHUP});
  ServeAnswers answers(absl::GetFlag(FLAGS_most));
  HttpServer server(options, [&answers](const HttpRequest& request) {
    return answers.To(request);
  });
  const absl::StatusOr<std::string> address = server.Listen();
  if (!address.ok()) return NotDone(ForTerminal(address.status().message()));
  DropPrivileges();
  server.Start();
  PrintOut(absl::StrCat("hakmem serve: ", ForTerminal(*address), "\n"));
  do {
    answers.Look();
  } while (!signals.ComeWithin(kBetweenLooks));
  answers.End();
  return kDone;
}

}  // namespace

constexpr Command kServeCommand = {
    "serve",
    "all processes on hakmem of a machine, for browsers and collectors",
    "[--FLAG…]",
    R"(
Answers by HTTP, until a signal (Ctrl-C) ends it:

    /                            all processes, each with its flame graph
    /metrics                     OpenMetrics, for Prometheus
    /processes                   JSON
    /debug/pprof/heap?pid=PID    for go tool pprof
    /debug/pprof/allocs?pid=PID  what was allocated; &seconds=N: in N seconds
    /-/healthy                   whether it answers

?program=NAME stands for all processes of that name. The processes need no
option for it and are neither stopped nor disturbed; it takes their user, or
CAP_SYS_PTRACE. Of root's privileges it keeps only those to read.

Exit status: 0 when a signal ended it, 1 when it could not listen, 2 for a
wrong command line.)",
    kFlags,
    Serve,
};

}  // namespace hakmem::tools
