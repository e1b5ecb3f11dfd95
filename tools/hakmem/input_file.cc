#include "tools/hakmem/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kChunkBytes = 65536;

absl::Status ErrorHere(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {}

InputFile::~InputFile() {
  if (file_ > STDIN_FILENO) ::close(file_);
}

absl::Status InputFile::Open(int flags) {
  if (file_ >= 0) return absl::OkStatus();
  file_ = path_ == "-" ? STDIN_FILENO
                       : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file_ < 0) return ErrorHere("cannot be opened");
  struct stat facts;
  if (::fstat(file_, &facts) != 0) return ErrorHere("cannot be opened");
  is_regular_ = S_ISREG(facts.st_mode);
  return absl::OkStatus();
}

absl::Status InputFile::ReadAll(const OnBytes& on_bytes) {
  if (absl::Status status = Open(0); !status.ok()) return status;
  std::string buffer(kChunkBytes, '\0');
  while (true) {
    const ssize_t got = ::read(file_, buffer.data(), buffer.size());
    if (got == 0) return absl::OkStatus();
    if (got < 0 && errno != EINTR) return ErrorHere("cannot be read");
    if (got > 0) {
      on_bytes(
          std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    }
  }
}

bool InputFile::Replaced() const {
  struct stat opened;
  if (::fstat(file_, &opened) != 0) return false;
  if (opened.st_size < ::lseek(file_, 0, SEEK_CUR)) return true;
  struct stat named;
  return path_ != "-" && ::stat(path_.c_str(), &named) == 0 &&
         (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev);
}

absl::Status InputFile::ReadNew(const OnBytes& on_bytes) {
  if (ended_) return absl::OkStatus();
  if (file_ < 0 && path_ != "-" && ::access(path_.c_str(), F_OK) != 0) {
    return absl::OkStatus();
  }
  // Nobody may have opened the other end of a pipe yet.
  if (absl::Status status = Open(O_NONBLOCK); !status.ok()) return status;
  std::string buffer(kChunkBytes, '\0');
  while (true) {
    if (!is_regular_) {
      struct pollfd ready = {file_, POLLIN, 0};
      if (::poll(&ready, 1, 0) <= 0) return absl::OkStatus();
    }
    const ssize_t got = ::read(file_, buffer.data(), buffer.size());
    if (got < 0)
      return errno == EINTR ? absl::OkStatus() : ErrorHere("cannot be read");
    if (got > 0) {
      on_bytes(
          std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
      continue;
    }
    if (!is_regular_) {
      ended_ = true;
    } else if (Replaced()) {
      if (path_ == "-") {
        ::lseek(file_, 0, SEEK_SET);
      } else {
        ::close(std::exchange(file_, -1));
      }
    }
    return absl::OkStatus();
  }
}

void AllowManyFiles() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, error), end;
       !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) files.push_back(at->path().string());
  }
  if (error) return absl::UnavailableError(error.message());
  if (files.empty()) return absl::NotFoundError("there is no file in it");
  std::sort(files.begin(), files.end());
  return files;
}

FileIdentity IdentityOf(const std::string& path) {
  struct stat facts;
  const int unknown = path == "-" ? ::fstat(STDIN_FILENO, &facts)
                                  : ::stat(path.c_str(), &facts);
  if (unknown != 0) return {0, 0, path};
  return {facts.st_dev, facts.st_ino, ""};
}

std::vector<std::string> EachOnce(
    const std::vector<std::string>& names,
    FileIdentity (*identity)(const std::string& name)) {
  std::vector<std::string> once;
  std::set<FileIdentity> known;
  for (const std::string& name : names) {
    if (known.insert(identity(name)).second) {
      once.push_back(name);
    } else {
      Complain(absl::StrCat(ForTerminal(name),
                            " was there before, and counts once"));
    }
  }
  return once;
}

}  // namespace hakmem::tools
