#include "tools/hakmem/subprocess.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hakmem::tools {
namespace {

bool IsProgram(const std::string& path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

void ReadAll(int file, std::string& content) {
  char buffer[65536];
  ssize_t got;
  while ((got = ::read(file, buffer, sizeof(buffer))) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) content.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string FindProgram(const std::string& name) {
  if (absl::StrContains(name, '/')) return IsProgram(name) ? name : "";
  const char* path = std::getenv("PATH");
  if (path == nullptr) return "";
  for (const std::string_view folder : absl::StrSplit(path, ':')) {
    const std::string candidate =
        absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (IsProgram(candidate)) return candidate;
  }
  return "";
}

absl::Status RunApart(const std::function<void(std::FILE*)>& work,
                      std::string& output) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "pipe");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::FILE* const file = ::fdopen(pipe_ends[1], "w");
    if (file == nullptr) ::_exit(EXIT_FAILURE);
    work(file);
    ::_exit(std::fflush(file) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  const int error = errno;
  ::close(pipe_ends[1]);
  if (child > 0) ReadAll(pipe_ends[0], output);
  ::close(pipe_ends[0]);
  if (child < 0) return absl::ErrnoToStatus(error, "fork");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      WIFEXITED(status) ? absl::StrCat("exit status ", WEXITSTATUS(status))
                        : absl::StrCat("signal ", WTERMSIG(status)));
}

absl::StatusOr<std::string> MakeTemporaryFolder(std::string_view name) {
  const char* parent = std::getenv("TMPDIR");
  if (parent == nullptr || parent[0] != '/') parent = "/tmp";
  std::string path = absl::StrCat(parent, "/", name, ".XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  }
  return path;
}

}  // namespace hakmem::tools
