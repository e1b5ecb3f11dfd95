#include "tools/hakmem/elf_file.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"

namespace hakmem::tools {
namespace {

// Notes are short; more is damage.
constexpr std::uint64_t kMaxNoteBytes = 1 << 20;
constexpr std::string_view kGnu("GNU\0", 4);

// A file may be cut off anywhere, so every read is checked.
template <typename T>
std::optional<T> ReadAt(std::ifstream& file, std::uint64_t offset) {
  T value;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(&value), sizeof(value));
  if (!file) return std::nullopt;
  return value;
}

constexpr std::size_t RoundedUp(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

std::string BuildIdInNotes(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const std::size_t name = RoundedUp(header.n_namesz);
    const std::size_t content = RoundedUp(header.n_descsz);
    if (name > notes.size() || content > notes.size() - name) return "";
    if (header.n_type == NT_GNU_BUILD_ID &&
        notes.substr(0, header.n_namesz) == kGnu) {
      return absl::BytesToHexString(notes.substr(name, header.n_descsz));
    }
    notes.remove_prefix(name + content);
  }
  return "";
}

// The segments' headers; none for what is no ELF file of this machine's kind.
std::vector<Elf64_Phdr> SegmentsOf(std::ifstream& file) {
  std::vector<Elf64_Phdr> segments;
  const auto header = ReadAt<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_phentsize != sizeof(Elf64_Phdr)) {
    return segments;
  }
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment =
        ReadAt<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) break;
    segments.push_back(*segment);
  }
  return segments;
}

}  // namespace

std::string BuildIdOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) {
      continue;
    }
    std::string notes(segment.p_filesz, '\0');
    file.clear();
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(notes.data(), static_cast<std::streamsize>(notes.size()));
    if (!file) return "";
    const std::string build_id = BuildIdInNotes(notes);
    if (!build_id.empty()) return build_id;
  }
  return "";
}

bool IsStaticProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  bool loaded = false;
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    if (segment.p_type == PT_INTERP) return false;
    if (segment.p_type == PT_LOAD) loaded = true;
  }
  return loaded;
}

}  // namespace hakmem::tools
