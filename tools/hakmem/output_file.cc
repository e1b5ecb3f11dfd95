#include "tools/hakmem/output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ios>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out.fail()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", ForTerminal(path),
                                             ": ", std::strerror(errno)));
}

}  // namespace hakmem::tools
