#include "tools/hakmem/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

std::string_view complainer;

}  // namespace

void SetComplainer(std::string_view subcommand) { complainer = subcommand; }

void Complain(std::string_view text) {
  const std::string line = absl::StrCat("hakmem", complainer.empty() ? "" : " ",
                                        complainer, ": ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool Succeeded(const absl::Status& status) {
  if (!status.ok()) Complain(status.message());
  return status.ok();
}

namespace {

int first_error = 0;

}  // namespace

void PrintOut(std::string_view text) {
  while (!text.empty() && first_error == 0) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      first_error = errno;
    }
  }
}

int OutputError() { return first_error; }

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const bool opened = out.is_open();
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out.fail()) return absl::OkStatus();
  absl::Status error = absl::UnavailableError(absl::StrCat(
      "cannot write ", ForTerminal(path), ": ", std::strerror(errno)));
  // Half a page would be taken for a whole one.
  std::error_code none;
  if (opened && std::filesystem::is_regular_file(path, none)) {
    std::filesystem::remove(path, none);
  }
  return error;
}

absl::Status WriteNewFile(const std::string& path, std::string_view bytes) {
  const std::string part = path + ".part";
  const auto failed = [&path](int error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot write ", ForTerminal(path), ": ", std::strerror(error)));
  };
  std::FILE* const file = std::fopen(part.c_str(), "wxe");
  if (file == nullptr) return failed(errno);
  const bool written =
      std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) == 0 && written &&
      std::rename(part.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  std::remove(part.c_str());
  return failed(error);
}

}  // namespace hakmem::tools
