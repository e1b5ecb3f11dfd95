#include "tools/hakmem/output_file.h"

#include <cerrno>
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

}  // namespace hakmem::tools
