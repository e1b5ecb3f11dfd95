#include "tools/hakmem/debug_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kSystemDebugFolder = "/usr/lib/debug";
constexpr std::string_view kDebianPackages = "/var/lib/dpkg/info";
constexpr std::string_view kList = ".list";

std::string_view FolderOf(std::string_view path) {
  return path.substr(0, path.rfind('/') + 1);
}

// Calls work(part) for the file's parts, in their order.
template <typename Work>
void ForEachPart(const NamedFile& file, Work work) {
  char buffer[65536];
  off_t at = 0;
  for (ssize_t got = 0;
       (got = ::pread(file.descriptor(), buffer, sizeof(buffer), at)) > 0;
       at += got) {
    work(std::string_view(buffer, static_cast<std::size_t>(got)));
  }
}

bool HasChecksum(const NamedFile& file, std::uint32_t wanted) {
  uLong sum = 0;
  ForEachPart(file, [&sum](std::string_view part) {
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(part.data()),
                  static_cast<uInt>(part.size()));
  });
  return file.descriptor() >= 0 && sum == wanted;
}

// By the lists of files that each package brought; "": none, or no Debian.
std::string DebianPackageOf(std::string_view root, std::string_view path) {
  // Lists may have a path from before all went into /usr.
  const std::string line = absl::StrCat(
      absl::StartsWith(path, "/usr/lib") ? path.substr(4) : path, "\n");
  std::error_code error;
  for (std::filesystem::directory_iterator
           at(absl::StrCat(root, kDebianPackages), error),
       end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!absl::EndsWith(name, kList)) continue;
    std::string lines = "\n";
    ForEachPart(NamedFile::Open(at->path().string()),
                [&lines](std::string_view part) { lines += part; });
    if (absl::StrContains(lines, absl::StrCat("\n", line)) ||
        absl::StrContains(lines, absl::StrCat("\n/usr", line))) {
      // "libfoo1:amd64.list"
      return name.substr(0,
                         std::min(name.find(':'), name.size() - kList.size()));
    }
  }
  return "";
}

}  // namespace

NamedFile::~NamedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

NamedFile NamedFile::Open(std::string path) {
  NamedFile file;
  file.path_ = std::move(path);
  // What is looked at is what is opened: the process may change one for the
  // other at any moment.
  const int place = ::open(file.path_.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return file;
  struct stat status = {};
  if (::fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
    file.descriptor_ = ::open(absl::StrCat("/proc/self/fd/", place).c_str(),
                              O_RDONLY | O_CLOEXEC);
  }
  ::close(place);
  return file;
}

std::string_view RootOf(std::string_view source) {
  constexpr std::string_view kProcesses = "/proc/";
  constexpr std::string_view kRoot = "/root";
  if (!absl::StartsWith(source, kProcesses)) return "";
  const std::size_t at = source.find('/', kProcesses.size());
  if (at == std::string_view::npos) return "";
  const std::string_view rest = source.substr(at);
  const bool is_root =
      absl::StartsWith(rest, kRoot) && rest.find('/', 1) == kRoot.size();
  return is_root ? source.substr(0, at + kRoot.size()) : "";
}

std::string DebugFile(std::string_view folder, std::string_view build_id) {
  if (build_id.size() < 3) return "";
  return absl::StrCat(folder, "/.build-id/", build_id.substr(0, 2), "/",
                      build_id.substr(2), ".debug");
}

std::string SystemDebugFile(std::string_view root, std::string_view build_id) {
  return DebugFile(absl::StrCat(root, kSystemDebugFolder), build_id);
}

NamedFile FileByLink(const LinkedFile& file, std::string_view from,
                     std::string_view link, std::uint32_t checksum) {
  if (checksum == 0) {
    return NamedFile::Open(absl::StartsWith(link, "/")
                               ? std::string(link)
                               : absl::StrCat(FolderOf(from), link));
  }
  const std::string_view folder = FolderOf(file.path);
  const std::string_view root = RootOf(file.path);
  std::vector<std::string> candidates = {
      absl::StrCat(folder, link), absl::StrCat(folder, ".debug/", link),
      absl::StrCat(root, kSystemDebugFolder, folder.substr(root.size()), link)};
  if (!file.folder.empty()) {
    candidates.insert(candidates.begin(), absl::StrCat(file.folder, "/", link));
  }
  for (std::string& candidate : candidates) {
    NamedFile found = NamedFile::Open(std::move(candidate));
    if (HasChecksum(found, checksum)) return found;
  }
  return {};
}

std::string RemedyForLines(std::string_view root, std::string_view path,
                           std::string_view build_id) {
  const std::string package = DebianPackageOf(root, path);
  if (package == "libc6") return "the package libc6-dbg brings them";
  if (!package.empty()) {
    return absl::StrCat("the package ", package, "-dbgsym brings them");
  }
  const std::string file = SystemDebugFile("", build_id);
  if (file.empty()) return "it was built without -g, or stripped";
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(root, "/usr/bin/rpm"), error)) {
    return absl::StrCat("dnf install ", file,
                        ", with the debuginfo repositories, brings them");
  }
  return absl::StrCat("it was built without -g, or stripped, and ", file,
                      " is not here");
}

}  // namespace hakmem::tools
