// The memory of another process, alive or in a core file, and the files that
// are mapped in it. Nothing is done to the process: no signal, no stop.
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_IMAGE_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {

// Of a table in another process.
inline std::uint64_t AddressOf(const void* there) {
  return reinterpret_cast<std::uint64_t>(there);
}

// A part of a file, where it is mapped.
struct MappedFile {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::string path;    // in the process's view
  std::string source;  // where this process can open it
};

// The entries of a folder of /proc that are numbers, in order: processes, or
// the threads of one.
std::vector<std::uint64_t> NumbersIn(const std::string& folder);

// The first thread of the process, or, where that has ended before others, one
// of these: it is by a thread that lives that the kernel tells of the memory.
std::uint64_t LivingThread(std::uint64_t pid);
// Whether it is gone, or waits for its parent alone.
bool HasEnded(std::uint64_t pid);

// The name of a process's file; "" where there is none to be seen.
std::string FileNameOf(std::uint64_t pid);
// What a process is called. The kernel cuts a name to kMostLetters; the rest is
// the file's, where that begins so.
inline constexpr std::size_t kMostLetters = 15;
std::string ProgramOf(std::uint64_t pid);

// Whether it is an ELF file, and a core.
bool IsCoreFile(const std::string& path);

class ProcessImage {
 public:
  // What the argument of a command names: a process by its number, else a core
  // file. The error is a sentence, with the remedy where there is one.
  static absl::StatusOr<ProcessImage> Open(const std::string& name);

  ProcessImage(ProcessImage&& other) noexcept;
  ProcessImage& operator=(ProcessImage&&) = delete;
  ~ProcessImage();

  absl::Status Read(std::uint64_t address, void* bytes,
                    std::size_t count) const;
  // Into a process that runs, where its own code may write.
  absl::Status Write(std::uint64_t address, const void* bytes,
                     std::size_t count) const;
  // Of all that look into a process by the same /proc, one at a time has its
  // lock, until the image is gone. False: another one has it.
  bool TryLock() const;
  // The text at the address, as far as its zero.
  std::string ReadText(std::uint64_t address) const;

  // The file in which the address lies, and by how much it was moved when it
  // was loaded. Null: in none.
  const MappedFile* FileAt(std::uint64_t address, std::uint64_t& moved) const;
  // Of the file as the process has it. "": it has none, or it is not known.
  std::string BuildIdOf(const MappedFile& file) const;
  // The file for who looks up names in it.
  Module ModuleOf(const MappedFile& file) const {
    return {file.path, BuildIdOf(file), is_core_ ? "" : file.source};
  }

  // Where the process's hakmem has this table: a note leads to their list. The
  // error is a sentence; `lack`: "it does not …", of a hakmem without it.
  absl::StatusOr<std::uint64_t> FindTables(std::string_view name,
                                           std::string_view lack) const;

  // The table itself, of one form.
  template <typename T>
  absl::Status ReadTables(std::string_view name, std::string_view lack,
                          T& tables) const {
    const absl::StatusOr<std::uint64_t> address = FindTables(name, lack);
    return address.ok() ? Read(*address, &tables, sizeof(tables))
                        : address.status();
  }
  // The error where tables are not what this command reads; `what`: "keeps its
  // blocks".
  absl::Status UnknownForm(std::string_view what) const;

  // For who keeps many: tables that were found stay known, others are not found
  // any more.
  void ForgetFiles() { std::vector<MappedFile>().swap(files_); }

  std::uint64_t pid() const { return pid_; }
  bool is_core() const { return is_core_; }
  const std::string& program() const { return program_; }
  // "process 4711 (server)"
  std::string Who() const;

 private:
  struct Segment {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in the core file
  };

  // A part of a file's notes, and where it lies.
  struct Notes {
    std::uint64_t address = 0;
    std::string content;
  };
  // A hakmem in the process, by its list of tables (TableList).
  struct Copy {
    std::uint64_t list = 0;
    std::string path;
  };

  ProcessImage() = default;
  absl::Status OpenProcess(std::uint64_t pid);
  absl::Status OpenCore(const std::string& path);
  void ReadNote(std::uint32_t type, std::string_view content);
  // From `address` on, as many bytes as lie together, at most `count`.
  absl::StatusOr<std::size_t> ReadCore(std::uint64_t address, char* bytes,
                                       std::size_t count) const;
  // Null: the address is in none.
  const MappedFile* MappingAt(std::uint64_t address) const;
  // Whether the file is still the build that the core file is of.
  bool IsSameBuild(const MappedFile& file) const;
  // How far the file of the mapping was moved.
  std::uint64_t MovedBy(const MappedFile& file) const;
  // Of the file that has its beginning there.
  std::vector<Notes> NotesOf(const MappedFile& beginning) const;
  void FindCopies() const;
  bool Serves(const Copy& copy) const;
  // The one that serves the process, if there are several; null: there is none.
  absl::StatusOr<const Copy*> OnlyCopy() const;

  int memory_ = -1;  // -1: it is read without its file
  bool is_core_ = false;
  std::uint64_t pid_ = 0;
  std::uint64_t thread_ = 0;  // that the kernel tells of its memory by
  std::string program_;
  // By their beginnings.
  std::vector<Segment> segments_;  // of a core file
  std::vector<MappedFile> files_;
  // Found.
  mutable std::optional<std::vector<Copy>> copies_;
  mutable std::map<std::string, bool> same_build_;  // by path
};

// Reads one after the other, until one fails.
class TableReads {
 public:
  explicit TableReads(const ProcessImage& image) : image_(image) {}

  template <typename T>
  TableReads& At(std::uint64_t address, T& value) {
    if (status_.ok()) status_ = image_.Read(address, &value, sizeof(value));
    return *this;
  }
  template <typename T>
  TableReads& At(const void* there, T& value) {
    return At(AddressOf(there), value);
  }
  const absl::Status& status() const { return status_; }

 private:
  const ProcessImage& image_;
  absl::Status status_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_IMAGE_H_
