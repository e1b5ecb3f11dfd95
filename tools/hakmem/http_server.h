// An HTTP server on cpp-httplib, which is seen in http_server.cc alone: few
// threads, small requests, one answer for each connection.
#ifndef HAKMEM_TOOLS_HAKMEM_HTTP_SERVER_H_
#define HAKMEM_TOOLS_HAKMEM_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hakmem::tools {

struct HttpRequest {
  std::string path;
  std::map<std::string, std::string, std::less<>> parameters;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  int refresh_seconds = 0;  // a browser asks again then; 0: it does not
};

class HttpServer {
 public:
  struct Options {
    std::string host;
    int port = 0;             // 0: any
    std::string socket_path;  // in place of both
    std::string token;        // "": nobody has to know one
  };
  // Called in several threads at once.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  HttpServer(Options options, Handler handler);
  // Ends when all answers are given.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes its address, for which a port below 1024 or another user's folder
  // takes privileges; who connects has to wait. Returns the address:
  // "http://127.0.0.1:4256", or the socket's path. The error is a sentence.
  absl::StatusOr<std::string> Listen();
  // From now on it answers. After Listen(), in threads of the caller's
  // privileges.
  void Start();

  // So many requests are answered at once; so many more wait, and the others'
  // connections are closed.
  static constexpr int kThreads = 16;
  static constexpr int kWaiting = 64;

 private:
  class Library;

  absl::Status Bind();
  absl::Status BindSocket();

  Options options_;
  std::unique_ptr<Library> library_;
  std::thread thread_;  // accepts connections
};

// Whether only programs of this machine reach the address.
bool IsLoopback(const std::string& host);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HTTP_SERVER_H_
