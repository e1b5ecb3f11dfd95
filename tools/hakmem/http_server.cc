#include "tools/hakmem/http_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hakmem::tools {
namespace {

constexpr int kPatienceSeconds = 5;
constexpr std::size_t kMaxBodyBytes = 1 << 20;
constexpr char kHealthy[] = "/-/healthy";
// The only path to which something is sent: pprof asks there for names.
constexpr char kSymbol[] = "/debug/pprof/symbol";

// Whether they are the same, in a time that tells nothing of where they differ.
bool IsSame(std::string_view given, std::string_view wanted) {
  if (given.size() != wanted.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(wanted[i]);
  }
  return difference == 0;
}

// Without the port, and the brackets of an address of IPv6.
std::string HostIn(std::string_view header) {
  if (header.starts_with('[')) {
    return std::string(header.substr(1, header.find(']') - 1));
  }
  return std::string(header.substr(0, header.find(':')));
}

bool IsAddress(const std::string& host) {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// A socket's file outlives who has listened there.
void RemoveIfNobodyListens(const std::string& path) {
  struct stat file = {};
  if (::lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return;
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path);
  if (::connect(client, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0 &&
      errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
  ::close(client);
}

}  // namespace

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (absl::StartsWith(host, "127.") && IsAddress(host));
}

class HttpServer::Library {
 public:
  Library(const Options& options, Handler handler)
      : token_(options.token),
        asks_for_host_(options.token.empty() && options.socket_path.empty() &&
                       IsLoopback(options.host)),
        handler_(std::move(handler)) {
    server_.new_task_queue = [] {
      return new httplib::ThreadPool(kThreads, kWaiting);
    };
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kPatienceSeconds);
    server_.set_write_timeout(kPatienceSeconds);
    server_.set_payload_max_length(kMaxBodyBytes);
    // Nobody else may listen at the same address.
    server_.set_socket_options([](int socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_.set_pre_routing_handler(
        [this](const auto& request, auto& response) {
          const HttpAnswer refusal = Refusal(request);
          // What is sent has to be read first.
          if (refusal.status == 200 && request.method == "POST") {
            return httplib::Server::HandlerResponse::Unhandled;
          }
          Answer(request, refusal, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    server_.Post(kSymbol, [this](const auto& request, auto& response) {
      Answer(request, {}, response);
    });
  }

  httplib::Server& server() { return server_; }

 private:
  void Answer(const httplib::Request& request, HttpAnswer answer,
              httplib::Response& response) const {
    if (answer.status == 401) {
      response.set_header("WWW-Authenticate", "Bearer");
    }
    if (answer.status == 405) response.set_header("Allow", "GET, HEAD");
    if (answer.status == 200) {
      answer = handler_(
          {.path = request.path,
           .parameters = {request.params.begin(), request.params.end()}});
    }
    if (answer.refresh_seconds != 0) {
      response.set_header("Refresh", std::to_string(answer.refresh_seconds));
    }
    response.status = answer.status;
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_content(std::move(answer.body), answer.type);
  }

  // 200: none.
  HttpAnswer Refusal(const httplib::Request& request) const {
    if (request.method != "GET" && request.method != "HEAD" &&
        (request.method != "POST" || request.path != kSymbol)) {
      return {.status = 405, .body = "there is nothing to change here\n"};
    }
    if (request.path == kHealthy) return {};
    constexpr std::string_view kScheme = "Bearer ";
    const std::string told = request.get_header_value("Authorization");
    if (!token_.empty() && (!absl::StartsWith(told, kScheme) ||
                            !IsSame(told.substr(kScheme.size()), token_))) {
      return {.status = 401,
              .body = "it takes the token: Authorization: Bearer TOKEN\n"};
    }
    // A page of another site may have its name lead here.
    const std::string host = HostIn(request.get_header_value("Host"));
    if (asks_for_host_ && host != "localhost" && !IsAddress(host)) {
      return {.status = 403,
              .body =
                  "without a token (--token-file) the host's name is "
                  "localhost or a number\n"};
    }
    return {};
  }

  const std::string token_;
  const bool asks_for_host_;
  const Handler handler_;
  httplib::Server server_;
};

HttpServer::HttpServer(Options options, Handler handler)
    : options_(std::move(options)),
      library_(std::make_unique<Library>(options_, std::move(handler))) {}

HttpServer::~HttpServer() {
  library_->server().stop();
  if (thread_.joinable()) thread_.join();
  if (!options_.socket_path.empty()) ::unlink(options_.socket_path.c_str());
}

absl::Status HttpServer::BindSocket() {
  // Until it is ours, nothing is removed at the end.
  const std::string path = std::exchange(options_.socket_path, "");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is too long for a socket's path"));
  }
  RemoveIfNobodyListens(path);
  library_->server().set_address_family(AF_UNIX);
  const mode_t before = ::umask(0117);
  const bool is_bound = library_->server().bind_to_port(path, 80);
  const int error = errno;
  ::umask(before);
  if (!is_bound) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", path, ": ", std::strerror(error)));
  }
  options_.socket_path = path;
  return absl::OkStatus();
}

absl::Status HttpServer::Bind() {
  if (!options_.socket_path.empty()) return BindSocket();
  errno = 0;
  if (options_.port == 0) {
    options_.port = library_->server().bind_to_any_port(options_.host);
    if (options_.port > 0) return absl::OkStatus();
  } else if (library_->server().bind_to_port(options_.host, options_.port)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen at ", options_.host, ":", options_.port, ": ",
                   errno == 0 ? "no such address" : std::strerror(errno)));
}

absl::StatusOr<std::string> HttpServer::Listen() {
  if (absl::Status status = Bind(); !status.ok()) return status;
  if (!options_.socket_path.empty()) return options_.socket_path;
  const bool is_v6 = absl::StrContains(options_.host, ':');
  return absl::StrCat("http://", is_v6 ? "[" : "", options_.host,
                      is_v6 ? "]" : "", ":", options_.port);
}

void HttpServer::Start() {
  thread_ = std::thread([this] { library_->server().listen_after_bind(); });
  library_->server().wait_until_ready();
}

}  // namespace hakmem::tools
