#include "tools/hakmem/library.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hakmem::tools {
namespace {

struct Variant {
  std::string_view name;
  std::string_view library;
};

constexpr Variant kVariants[] = {{"release", "libhakmem.so"},
                                 {"tracing", "libhakmem-tracing.so"},
                                 {"hardened", "libhakmem-hardened.so"},
                                 {"debug", "libhakmem-debug.so"}};

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  const char* chosen = std::getenv("HAKMEM_LIBRARY_DIR");
  if (chosen != nullptr && chosen[0] != '\0') folders.emplace_back(chosen);
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return folders;
  const std::string folder = program.parent_path().string();
  folders.push_back(folder);
  std::vector<std::string> libraries = {"lib", "lib64"};
  struct utsname machine;
  if (::uname(&machine) == 0) {
    // Debian's folders of one architecture.
    libraries.push_back(absl::StrCat("lib/", machine.machine, "-linux-gnu"));
  }
  for (const std::string& library : libraries) {
    folders.push_back(absl::StrCat(folder, "/../", library));
    folders.push_back(absl::StrCat(folder, "/../", library, "/hakmem"));
  }
  folders.push_back(
      absl::StrCat(program.string(), ".runfiles/hakmem/allocator"));
  folders.push_back(absl::StrCat(folder, "/../../allocator"));
  return folders;
}

}  // namespace

absl::StatusOr<std::string> LibraryName(std::string_view variant) {
  std::vector<std::string_view> names;
  for (const Variant& known : kVariants) {
    if (known.name == variant) return std::string(known.library);
    names.push_back(known.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--variant=", variant, ": there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::string> FindLibrary(std::string_view variant) {
  const absl::StatusOr<std::string> name = LibraryName(variant);
  if (!name.ok()) return name.status();
  const std::vector<std::string> folders = Folders();
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::canonical(absl::StrCat(folder, "/", *name), error);
    if (!error) return path.string();
  }
  return absl::NotFoundError(absl::StrCat(
      "cannot find ", *name, " (looked in ", absl::StrJoin(folders, ", "),
      "); name it with --library=FILE, or its folder with HAKMEM_LIBRARY_DIR"));
}

}  // namespace hakmem::tools
