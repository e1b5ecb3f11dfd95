#include "tools/hakmem/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {

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
