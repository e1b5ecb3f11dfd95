#include "tools/hakmem/process_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/procfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/elf_file.h"

namespace hakmem::tools {
namespace {

// Each of 10,000 threads has all its registers in them.
constexpr std::uint64_t kMaxNotesBytes = 1 << 30;
constexpr std::size_t kMaxTextBytes = 64;

absl::Status Error(const std::string& what) {
  return absl::FailedPreconditionError(what);
}

// All of it, or an error.
bool ReadFile(int file, std::uint64_t offset, void* bytes, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(file, static_cast<char*>(bytes) + done, count - done,
                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;  // the end
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// The same of another user's process, whose file takes CAP_DAC_READ_SEARCH to
// open: this takes CAP_SYS_PTRACE alone.
bool ReadMemory(std::uint64_t thread, std::uint64_t address, void* bytes,
                std::size_t count) {
  const iovec to = {bytes, count};
  const iovec from = {reinterpret_cast<void*>(address), count};
  errno = 0;
  return ::process_vm_readv(static_cast<pid_t>(thread), &to, 1, &from, 1, 0) ==
         static_cast<ssize_t>(count);
}

template <typename T>
T Take(std::string_view& content) {
  T value = {};
  if (content.size() < sizeof(value)) {
    content = {};
    return value;
  }
  std::memcpy(&value, content.data(), sizeof(value));
  content.remove_prefix(sizeof(value));
  return value;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "begin-end flags offset device inode path"
bool ParseMapping(const std::string& line, MappedFile& mapping) {
  std::istringstream words(line);
  std::string range;
  std::string flags;
  std::string offset;
  std::string device;
  std::string inode;
  words >> range >> flags >> offset >> device >> inode >> std::ws;
  std::getline(words, mapping.path);
  const std::size_t dash = range.find('-');
  return dash != std::string::npos && mapping.path.starts_with('/') &&
         absl::SimpleHexAtoi(range.substr(0, dash), &mapping.begin) &&
         absl::SimpleHexAtoi(range.substr(dash + 1), &mapping.end) &&
         absl::SimpleHexAtoi(offset, &mapping.offset);
}

// Whether the kernel tells by this thread of the memory that it runs in.
bool HasMemory(std::uint64_t thread) {
  const std::string pages = FirstLine(absl::StrCat("/proc/", thread, "/statm"));
  return !pages.empty() && !pages.starts_with("0 ");
}

// What the kernel says of its own threads and of who has ended is the same.
absl::Status NoMemory(std::uint64_t pid) {
  return Error(absl::StrCat("process ", pid, " has ended, or is the kernel's"));
}

absl::Status NoPermission(std::uint64_t pid) {
  if (::geteuid() == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", pid,
                     " may not be read: it takes CAP_SYS_PTRACE, which root "
                     "may lack in a container"));
  }
  std::string text = absl::StrCat(
      "process ", pid, " may not be read: run this as its user or as root");
  const std::string scope = FirstLine("/proc/sys/kernel/yama/ptrace_scope");
  if (scope != "0" && !scope.empty()) {
    absl::StrAppend(&text, " (kernel.yama.ptrace_scope is ", scope,
                    ", which lets nobody but root)");
  }
  return absl::PermissionDeniedError(text);
}

// Of elements by their beginnings; null: all begin behind the address.
template <typename T>
const T* LastAtOrBefore(const std::vector<T>& elements, std::uint64_t address) {
  const auto behind =
      std::ranges::upper_bound(elements, address, {}, &T::begin);
  return behind == elements.begin() ? nullptr : &*std::prev(behind);
}

}  // namespace

std::vector<std::uint64_t> NumbersIn(const std::string& folder) {
  std::vector<std::uint64_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    std::uint64_t number = 0;
    if (absl::SimpleAtoi(at->path().filename().string(), &number)) {
      numbers.push_back(number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::uint64_t LivingThread(std::uint64_t pid) {
  if (HasMemory(pid)) return pid;
  const auto threads = NumbersIn(absl::StrCat("/proc/", pid, "/task"));
  const auto living = std::ranges::find_if(threads, HasMemory);
  return living == threads.end() ? pid : *living;
}

bool HasEnded(std::uint64_t pid) { return !HasMemory(LivingThread(pid)); }

std::string FileNameOf(std::uint64_t pid) {
  std::error_code error;
  const std::string name =
      std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error)
          .filename()
          .string();
  return std::string(absl::StripSuffix(name, " (deleted)"));
}

std::string ProgramOf(std::uint64_t pid) {
  std::string name = FirstLine(absl::StrCat("/proc/", pid, "/comm"));
  if (name.size() < kMostLetters) return name;
  std::string file = FileNameOf(pid);
  return file.starts_with(name) ? file : name;
}

bool IsCoreFile(const std::string& path) {
  std::error_code error;
  // A pipe is not to be read from here.
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header = {};
  return file.read(reinterpret_cast<char*>(&header), sizeof(header)) &&
         std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_type == ET_CORE;
}

absl::StatusOr<ProcessImage> ProcessImage::Open(const std::string& name) {
  ProcessImage image;
  std::uint64_t pid = 0;
  const absl::Status status = absl::SimpleAtoi(name, &pid)
                                  ? image.OpenProcess(pid)
                                  : image.OpenCore(name);
  if (!status.ok()) return status;
  return image;
}

ProcessImage::ProcessImage(ProcessImage&& other) noexcept
    : memory_(std::exchange(other.memory_, -1)),
      is_core_(other.is_core_),
      pid_(other.pid_),
      thread_(other.thread_),
      program_(std::move(other.program_)),
      segments_(std::move(other.segments_)),
      files_(std::move(other.files_)),
      copies_(std::move(other.copies_)),
      same_build_(std::move(other.same_build_)) {}

ProcessImage::~ProcessImage() {
  if (memory_ >= 0) ::close(memory_);
}

absl::Status ProcessImage::OpenProcess(std::uint64_t pid) {
  const std::string first_thread = absl::StrCat("/proc/", pid);
  if (::access(first_thread.c_str(), F_OK) != 0) {
    return Error(absl::StrCat("there is no process ", pid));
  }
  pid_ = pid;
  program_ = ProgramOf(pid);
  thread_ = LivingThread(pid);
  const std::string folder = absl::StrCat("/proc/", thread_);
  memory_ = ::open((folder + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_of_another = memory_ < 0 && errno == EACCES;
  std::ifstream maps(folder + "/maps");
  if ((memory_ < 0 && !is_of_another) || !maps) {
    if (errno == EACCES || errno == EPERM) return NoPermission(pid);
    if (errno == ESRCH) return NoMemory(pid);
    return Error(absl::StrCat("process ", pid,
                              " cannot be read: ", std::strerror(errno)));
  }
  for (std::string line; std::getline(maps, line);) {
    MappedFile mapping;
    if (!ParseMapping(line, mapping)) continue;
    // A container has a root of its own; a file that was replaced is still
    // there by its mapping.
    mapping.source = absl::StrCat(folder, "/root", mapping.path);
    if (::access(mapping.source.c_str(), R_OK) != 0) {
      mapping.source =
          absl::StrCat(folder, "/map_files/", line.substr(0, line.find(' ')));
    }
    mapping.path = absl::StripSuffix(mapping.path, " (deleted)");
    files_.push_back(std::move(mapping));
  }
  if (files_.empty()) return NoMemory(pid);
  char any = 0;
  return is_of_another ? Read(files_.front().begin, &any, sizeof(any))
                       : absl::OkStatus();
}

absl::Status ProcessImage::OpenCore(const std::string& path) {
  is_core_ = true;
  // A pipe is not waited for.
  memory_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (memory_ < 0) {
    return Error(absl::StrCat(
        path, ": ",
        errno == ENOENT ? "there is no such file, and no such process on "
                          "hakmem that may be read"
                        : std::strerror(errno)));
  }
  Elf64_Ehdr header = {};
  if (!ReadFile(memory_, 0, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_CORE) {
    return Error(path + " is neither a process's number nor a core file");
  }
  std::uint64_t segments = header.e_phnum;
  if (segments == PN_XNUM) {
    // More than the header can say: the first section does.
    Elf64_Shdr section = {};
    if (!ReadFile(memory_, header.e_shoff, &section, sizeof(section))) {
      return Error(path + " is cut off");
    }
    segments = section.sh_info;
  }
  for (std::uint64_t i = 0; i < segments; ++i) {
    Elf64_Phdr segment = {};
    if (!ReadFile(memory_, header.e_phoff + i * sizeof(segment), &segment,
                  sizeof(segment))) {
      return Error(path + " is cut off");
    }
    if (segment.p_type == PT_LOAD) {
      segments_.push_back(
          {segment.p_vaddr, segment.p_filesz, segment.p_offset});
    }
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotesBytes)
      continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadFile(memory_, segment.p_offset, notes.data(), notes.size())) {
      return Error(path + " is cut off");
    }
    ForEachNote(
        notes, [this](const Note& note) { ReadNote(note.type, note.content); });
  }
  if (files_.empty()) return Error(path + " does not say which files it had");
  std::ranges::sort(segments_, {}, &Segment::begin);
  std::ranges::sort(files_, {}, &MappedFile::begin);
  return absl::OkStatus();
}

void ProcessImage::ReadNote(std::uint32_t type, std::string_view content) {
  if (type == NT_PRPSINFO) {
    const auto info = Take<elf_prpsinfo>(content);
    pid_ = static_cast<std::uint64_t>(info.pr_pid);
    program_.assign(info.pr_fname,
                    ::strnlen(info.pr_fname, sizeof(info.pr_fname)));
  }
  if (type != NT_FILE) return;
  const auto count = Take<std::uint64_t>(content);
  const auto page_bytes = Take<std::uint64_t>(content);
  for (std::uint64_t i = 0; i < count && !content.empty(); ++i) {
    MappedFile mapping;
    mapping.begin = Take<std::uint64_t>(content);
    mapping.end = Take<std::uint64_t>(content);
    mapping.offset = Take<std::uint64_t>(content) * page_bytes;
    files_.push_back(std::move(mapping));
  }
  for (MappedFile& mapping : files_) {
    mapping.path = content.substr(0, content.find('\0'));
    mapping.source = mapping.path;
    content.remove_prefix(std::min(content.size(), mapping.path.size() + 1));
  }
}

absl::Status ProcessImage::Read(std::uint64_t address, void* bytes,
                                std::size_t count) const {
  if (!is_core_) {
    if (memory_ < 0 ? ReadMemory(thread_, address, bytes, count)
                    : ReadFile(memory_, address, bytes, count)) {
      return absl::OkStatus();
    }
    if (errno == EACCES || errno == EPERM) return NoPermission(pid_);
    return Error(absl::StrCat("process ", pid_, " has ended meanwhile"));
  }
  std::size_t done = 0;
  while (done < count) {
    const absl::StatusOr<std::size_t> more = ReadCore(
        address + done, static_cast<char*>(bytes) + done, count - done);
    if (!more.ok()) return more.status();
    done += *more;
  }
  return absl::OkStatus();
}

absl::Status ProcessImage::Write(std::uint64_t address, const void* bytes,
                                 std::size_t count) const {
  const iovec from = {const_cast<void*>(bytes), count};
  const iovec to = {reinterpret_cast<void*>(address), count};
  const ssize_t written = ::process_vm_writev(
      static_cast<pid_t>(LivingThread(pid_)), &from, 1, &to, 1, 0);
  if (written == static_cast<ssize_t>(count)) return absl::OkStatus();
  if (written < 0 && (errno == EACCES || errno == EPERM)) {
    return NoPermission(pid_);
  }
  return Error(written < 0 && errno == ESRCH
                   ? absl::StrCat("process ", pid_, " has ended meanwhile")
                   : absl::StrCat("process ", pid_, " cannot be written to"));
}

// Nobody has this file open who may not write to the process.
bool ProcessImage::TryLock() const {
  return ::flock(memory_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

absl::StatusOr<std::size_t> ProcessImage::ReadCore(std::uint64_t address,
                                                   char* bytes,
                                                   std::size_t count) const {
  if (const Segment* segment = LastAtOrBefore(segments_, address);
      segment != nullptr && address - segment->begin < segment->bytes) {
    const std::uint64_t before = address - segment->begin;
    count = std::min<std::size_t>(count, segment->bytes - before);
    if (ReadFile(memory_, segment->offset + before, bytes, count)) return count;
    return Error("the core file is cut off");
  }
  // What nobody has written is not in a core file, but in its own.
  if (const MappedFile* file = MappingAt(address); file != nullptr) {
    if (!IsSameBuild(*file)) {
      return Error(absl::StrCat(
          file->path, " is not here as the build that the core file is of"));
    }
    std::ifstream stream(file->source, std::ios::binary);
    stream.seekg(
        static_cast<std::streamoff>(file->offset + (address - file->begin)));
    count = std::min<std::size_t>(count, file->end - address);
    if (stream.read(bytes, static_cast<std::streamsize>(count))) return count;
  }
  return Error("the core file does not have hakmem's memory");
}

std::string ProcessImage::ReadText(std::uint64_t address) const {
  std::string text;
  char next = 0;
  while (text.size() < kMaxTextBytes && Read(address, &next, 1).ok() &&
         next != '\0') {
    // Another user's process may hold anything there, for a terminal, too.
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(next)) ||
                       next == '.' || next == '-' || next == '+';
    text += plain ? next : '?';
    ++address;
  }
  return text;
}

std::string ProcessImage::Who() const {
  return absl::StrCat("process ", pid_, " (", program_, ")");
}

const MappedFile* ProcessImage::MappingAt(std::uint64_t address) const {
  const MappedFile* const file = LastAtOrBefore(files_, address);
  return file != nullptr && address < file->end ? file : nullptr;
}

const MappedFile* ProcessImage::FileAt(std::uint64_t address,
                                       std::uint64_t& moved) const {
  const MappedFile* const file = MappingAt(address);
  if (file != nullptr) moved = MovedBy(*file);
  return file;
}

bool ProcessImage::IsSameBuild(const MappedFile& file) const {
  // True meanwhile: what the core file lacks of the build id is in the file.
  const auto [known, is_new] = same_build_.try_emplace(file.path, true);
  if (is_new) {
    const std::string build_id = BuildIdOf(file);
    known->second = build_id.empty() || build_id == BuildIdOfFile(file.source);
  }
  return known->second;
}

}  // namespace hakmem::tools
