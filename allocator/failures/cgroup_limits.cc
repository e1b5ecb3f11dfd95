#include "allocator/failures/cgroup_limits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/platform/single_threaded.h"

namespace hakmem {

namespace {

// A path that is built from parts. Longer ones than the kernel's files have in
// practice are given up.
class Path {
 public:
  bool Append(std::string_view part) {
    if (part.size() >= sizeof(text_) - length_) return false;
    part.copy(text_ + length_, part.size());
    Cut(length_ + part.size());
    return true;
  }
  // The same for a field of mountinfo, in which blanks and backslashes are
  // octal: "\040".
  bool AppendUnescaped(std::string_view field) {
    while (!field.empty()) {
      char next = field.front();
      std::size_t taken = 1;
      if (next == '\\' && field.size() >= 4) {
        next = static_cast<char>((field[1] - '0') * 64 + (field[2] - '0') * 8 +
                                 (field[3] - '0'));
        taken = 4;
      }
      if (!Append({&next, 1})) return false;
      field.remove_prefix(taken);
    }
    return true;
  }
  void Cut(std::size_t length) {
    length_ = length;
    text_[length] = '\0';
  }
  const char* c_str() const { return text_; }
  std::string_view text() const { return {text_, length_}; }

 private:
  char text_[ProcReader::kMaxPathBytes] = {};
  std::size_t length_ = 0;
};

enum class Version : std::uint8_t { kOne, kTwo };

struct LimitFile {
  const char* name;
  const char* limit;
  const char* use;
  Version version;
};
constexpr char kKernelLimitFile[] = "/memory.kmem.limit_in_bytes";
constexpr LimitFile kLimitFiles[] = {
    {kLimitCgroupMax, "/memory.max", "/memory.current", Version::kTwo},
    {kLimitCgroupHigh, "/memory.high", "/memory.current", Version::kTwo},
    {kLimitCgroupMax, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     Version::kOne},
    {kLimitCgroupMax, kKernelLimitFile, "/memory.kmem.usage_in_bytes",
     Version::kOne},
};

// Version 1 writes "no limit" as the largest number of whole pages.
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size()
                                                       : comma + 1);
  }
  return false;
}

// The calling thread's group: "0::/a/b", "4:cpu,memory:/a/b". A first thread
// that has ended is in the root group (version 1).
HAK_COLD bool FindGroup(const ProcReader& files, Version version, Path& group) {
  LineReader reader(files, "/proc/thread-self/cgroup");
  std::string_view line;
  while (reader.Next(line)) {
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    // Not substr: its exception would be a symbol that libc does not have.
    const std::string_view controllers(line.data() + first + 1,
                                       second - first - 1);
    const bool match = version == Version::kTwo
                           ? line.starts_with("0:") && controllers.empty()
                           : HasWord(controllers, "memory");
    if (!match) continue;
    line.remove_prefix(second + 1);
    return group.Append(line);
  }
  files.NoteError(reader.error_number());
  return false;
}

// One mount of a hierarchy, from a line of mountinfo: "35 31 0:32 ROOT POINT
// rw,relatime shared:9 - cgroup2 cgroup rw". False: the line is another's.
bool ParseMount(std::string_view line, Version version, std::string_view& root,
                std::string_view& point) {
  for (int i = 0; i < 3; ++i) TakeWord(line);
  root = TakeWord(line);
  point = TakeWord(line);
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return false;
  line.remove_prefix(dash + 3);
  const std::string_view type = TakeWord(line);
  if (version == Version::kTwo) return type == "cgroup2";
  TakeWord(line);
  return type == "cgroup" && HasWord(TakeWord(line), "memory");
}

// The folder of `group` and how long the hierarchy's own part of it is. A mount
// shows what is below its root: all, or a container's own group.
HAK_COLD bool FindFolder(const ProcReader& files, Version version,
                         const Path& group, Path& folder,
                         std::size_t& mount_length) {
  LineReader reader(files, "/proc/self/mountinfo");
  std::string_view line;
  std::string_view root;
  std::string_view point;
  while (reader.Next(line)) {
    if (!ParseMount(line, version, root, point)) continue;
    folder.Cut(0);
    if (!folder.AppendUnescaped(root)) continue;
    const std::size_t shown = root == "/" ? 0 : folder.text().size();
    std::string_view below = group.text();
    std::string_view above = folder.text();
    above.remove_suffix(above.size() - shown);
    if (!below.starts_with(above)) continue;
    below.remove_prefix(shown);
    // "/../x" lies outside of the process's namespace.
    if (!below.empty() && (below[0] != '/' || below.starts_with("/.."))) {
      continue;
    }
    if (below == "/") below = {};
    folder.Cut(0);
    if (!folder.AppendUnescaped(point)) continue;
    mount_length = folder.text().size();
    if (folder.Append(below)) return true;
  }
  files.NoteError(reader.error_number());
  return false;
}

void ReadGroup(const ProcReader& files, Version version, Path& folder,
               LimitReport& report) {
  const std::size_t length = folder.text().size();
  const auto path_of = [&](const char* name) {
    folder.Cut(length);
    return folder.Append(name) ? folder.c_str() : "";  // which is no file
  };
  for (const LimitFile& file : kLimitFiles) {
    std::uint64_t value = 0;
    std::uint64_t use = 0;
    // Most groups have no limit, and of these the use is not read.
    if (file.version == version &&
        files.ReadNumber(path_of(file.limit), value) && value < kUnlimited &&
        files.ReadNumber(path_of(file.use), use)) {
      report.Add(file.name, path_of(file.limit), value, use);
    }
  }
  folder.Cut(length);
}

// False: the version has no group of this thread.
HAK_COLD bool ReadHierarchy(const ProcReader& files, Version version,
                            LimitReport& report) {
  Path folder;
  std::size_t mount_length = 0;
  {
    Path group;
    if (!FindGroup(files, version, group) ||
        !FindFolder(files, version, group, folder, mount_length)) {
      return false;
    }
  }
  for (unsigned i = 0; i < kMaxGroups; ++i) {
    ReadGroup(files, version, folder, report);
    if (folder.text().size() <= mount_length) break;
    folder.Cut(folder.text().rfind('/'));
  }
  return true;
}

}  // namespace

void ReadCgroupLimits(const ProcReader& files, LimitReport& report) {
  // The kernel counts memory in one of the two.
  if (!ReadHierarchy(files, Version::kOne, report)) {
    ReadHierarchy(files, Version::kTwo, report);
  }
}

HAK_COLD std::uint64_t FindCgroupMemory() {
  return MayOpenFiles() ? LeastCgroupMemory(ProcReader()) : 0;
}

HAK_COLD std::uint64_t LeastCgroupMemory(const ProcReader& files) {
  LimitReport report;
  ReadCgroupLimits(files, report);
  std::uint64_t least = kNoLimit;
  for (unsigned i = 0; i < report.count; ++i) {
    const LimitReading& reading = report.readings[i];
    // A long source is kept from its end on.
    const bool of_kernel =
        std::string_view(reading.source).ends_with(kKernelLimitFile);
    if (!of_kernel) least = std::min(least, reading.value);
  }
  return least;
}

}  // namespace hakmem
