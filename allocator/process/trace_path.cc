#include "allocator/process/trace_path.h"

#include <cstddef>

#include "allocator/process/process.h"

namespace hakmem {

bool HasProcessId(std::string_view path) {
  return path.find("%p") != std::string_view::npos;
}

void ExpandPath(std::string_view path, RawPrinter& out) {
  for (std::size_t at = path.find("%p"); at != std::string_view::npos;
       at = path.find("%p")) {
    out.Text(path.substr(0, at));
    out.SignedDecimal(ProcessId());
    path.remove_prefix(at + 2);
  }
  out.Text(path);
}

}  // namespace hakmem
