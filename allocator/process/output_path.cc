#include "allocator/process/output_path.h"

#include <cstddef>

#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Written at the start; "": not known, or not needed.
constinit char g_start_folder[1024] = "";

}  // namespace

void KeepFolderFor(std::string_view path) {
  if (path.empty() || path == "1" || path[0] == '/') return;
  if (!CurrentFolder(g_start_folder)) g_start_folder[0] = '\0';
}

bool HasProcessId(std::string_view path) {
  return path.find("%p") != std::string_view::npos;
}

void ExpandPath(std::string_view path, RawPrinter& out) {
  if (!path.starts_with('/') && g_start_folder[0] != '\0') {
    out.Text(g_start_folder).Text("/");
  }
  for (std::size_t at = path.find("%p"); at != std::string_view::npos;
       at = path.find("%p")) {
    out.Text(path.substr(0, at));
    out.SignedDecimal(ProcessId());
    path.remove_prefix(at + 2);
  }
  out.Text(path);
}

}  // namespace hakmem
