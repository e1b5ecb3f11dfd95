// Where separate debug information lies, and what brings it.
#ifndef HAKMEM_TOOLS_HAKMEM_DEBUG_FILES_H_
#define HAKMEM_TOOLS_HAKMEM_DEBUG_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace hakmem::tools {

// A regular file that is open for reading; or none is.
class NamedFile {
 public:
  NamedFile() = default;
  NamedFile(NamedFile&& other) noexcept
      : descriptor_(other.Release()), path_(std::move(other.path_)) {}
  NamedFile& operator=(NamedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~NamedFile();

  // What a process has mapped may be a device, or at its path may be a pipe by
  // now: these are not opened, as that may wait for ever.
  static NamedFile Open(std::string path);

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  // The caller closes it.
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
  std::string path_;
};

// What is before a path of a running process's view: "/proc/PID/root" or "".
std::string_view RootOf(std::string_view source);

// Debug information in a folder, by build id; "": there is no such id.
std::string DebugFile(std::string_view folder, std::string_view build_id);
// As `DebugFile`, in the system's own folder.
std::string SystemDebugFile(std::string_view root, std::string_view build_id);

// Whose debug information is looked for.
struct LinkedFile {
  std::string path;
  std::string folder;  // searched first; "": none
};
// What `from`, the file itself or its debug information, calls by a link. A
// checksum of 0: the link is relative to `from`, as dwz makes them.
NamedFile FileByLink(const LinkedFile& file, std::string_view from,
                     std::string_view link, std::uint32_t checksum);

// A sentence's end: what would bring the lines of a file, of the path in its
// process's view.
std::string RemedyForLines(std::string_view root, std::string_view path,
                           std::string_view build_id);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_DEBUG_FILES_H_
