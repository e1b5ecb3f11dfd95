#include "tools/hakmem/subprocess.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
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

// A file in memory with this content, read from its start.
absl::StatusOr<int> FileWith(std::string_view content) {
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, "memfd_create");
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written <= 0) {
      ::close(file);
      return absl::ErrnoToStatus(errno, "write");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

std::string ReadAll(int file) {
  std::string content;
  char buffer[65536];
  ssize_t got;
  while ((got = ::read(file, buffer, sizeof(buffer))) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) content.append(buffer, static_cast<std::size_t>(got));
  }
  return content;
}

// Without what would have the program look names up on the network, and
// without an allocator under test.
std::vector<char*> QuietEnvironment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, "DEBUGINFOD_URLS=") &&
        !absl::StartsWith(*entry, "LD_PRELOAD=")) {
      kept.push_back(*entry);
    }
  }
  kept.push_back(nullptr);
  return kept;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command, int input,
                            int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, arguments[0], &actions, nullptr,
                                  arguments.data(), QuietEnvironment().data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, "cannot be run");
  return child;
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

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command,
                                     std::string_view input) {
  const absl::StatusOr<int> in = FileWith(input);
  if (!in.ok()) return in.status();
  const absl::Cleanup close_in = [&in] { ::close(*in); };
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "pipe");
  }
  const absl::StatusOr<pid_t> child = Spawn(command, *in, pipe_ends[1]);
  ::close(pipe_ends[1]);
  const absl::Cleanup close_out = [&pipe_ends] { ::close(pipe_ends[0]); };
  if (!child.ok()) return child.status();
  std::string output = ReadAll(pipe_ends[0]);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(
        WIFEXITED(status) ? absl::StrCat("exit status ", WEXITSTATUS(status))
                          : absl::StrCat("signal ", WTERMSIG(status)));
  }
  return output;
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
