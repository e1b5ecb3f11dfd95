#include "tools/hakmem/standard_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace hakmem::tools {
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

}  // namespace hakmem::tools
