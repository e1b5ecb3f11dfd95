#include "tools/hakmem/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hakmem::tools {
namespace {

// Notes are short; more is damage.
constexpr std::uint64_t kMaxNoteBytes = 1 << 20;
// Symbols of the largest programs, and their names.
constexpr std::uint64_t kMaxTableBytes = std::uint64_t{1} << 29;

// What a process has mapped may be a device, or at its path may be a pipe by
// now: to open these may wait for ever. What is looked at is what is opened:
// the process may change one for the other at any moment.
std::ifstream OpenRegular(const std::string& path) {
  std::ifstream file;
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return file;
  struct stat status = {};
  if (::fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
    file.open(absl::StrCat("/proc/self/fd/", place), std::ios::binary);
  }
  ::close(place);
  return file;
}

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

// Nothing for what is no ELF file of this machine's kind.
std::optional<Elf64_Ehdr> HeaderOf(std::ifstream& file) {
  const auto header = ReadAt<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return std::nullopt;
  }
  return header;
}

std::vector<Elf64_Phdr> SegmentsOf(std::ifstream& file) {
  std::vector<Elf64_Phdr> segments;
  const auto header = HeaderOf(file);
  if (!header || header->e_phentsize != sizeof(Elf64_Phdr)) return segments;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment =
        ReadAt<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) break;
    segments.push_back(*segment);
  }
  return segments;
}

std::vector<Elf64_Shdr> SectionsOf(std::ifstream& file) {
  std::vector<Elf64_Shdr> sections;
  const auto header = HeaderOf(file);
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return sections;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section =
        ReadAt<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) break;
    sections.push_back(*section);
  }
  return sections;
}

std::string ContentAt(std::ifstream& file, std::uint64_t offset,
                      std::uint64_t bytes) {
  if (bytes > kMaxTableBytes) return "";
  std::string content(bytes, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  return file ? content : "";
}

std::string ContentOf(std::ifstream& file, const Elf64_Shdr& section) {
  return ContentAt(file, section.sh_offset, section.sh_size);
}

void AddDefinedFunctions(std::string_view symbols, const std::string& names,
                         std::set<std::string, std::less<>>& found) {
  for (; symbols.size() >= sizeof(Elf64_Sym);
       symbols.remove_prefix(sizeof(Elf64_Sym))) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, symbols.data(), sizeof(symbol));
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size() ||
        (type != STT_FUNC && type != STT_GNU_IFUNC)) {
      continue;
    }
    // As far as the next zero, which c_str() has at the end at the latest.
    found.emplace(names.c_str() + symbol.st_name);
  }
}

}  // namespace

std::optional<std::string_view> FindNote(std::string_view notes,
                                         std::string_view name,
                                         std::uint32_t type) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const std::size_t name_bytes = RoundedUp(header.n_namesz);
    const std::size_t content_bytes = RoundedUp(header.n_descsz);
    if (name_bytes > notes.size() ||
        content_bytes > notes.size() - name_bytes) {
      break;
    }
    // The name's zero is part of it.
    if (header.n_type == type && header.n_namesz == name.size() + 1 &&
        notes.starts_with(name)) {
      return notes.substr(name_bytes, header.n_descsz);
    }
    notes.remove_prefix(name_bytes + content_bytes);
  }
  return std::nullopt;
}

std::string BuildIdInNotes(std::string_view notes) {
  return absl::BytesToHexString(
      FindNote(notes, "GNU", NT_GNU_BUILD_ID).value_or(""));
}

std::string BuildIdOfFile(const std::string& path) {
  std::ifstream file = OpenRegular(path);
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) {
      continue;
    }
    const std::string build_id =
        BuildIdInNotes(ContentAt(file, segment.p_offset, segment.p_filesz));
    if (!build_id.empty()) return build_id;
  }
  return "";
}

std::vector<std::string> DefinedFunctions(
    const std::string& path, const std::vector<std::string_view>& names) {
  std::ifstream file = OpenRegular(path);
  const std::vector<Elf64_Shdr> sections = SectionsOf(file);
  std::set<std::string, std::less<>> found;
  for (const Elf64_Shdr& section : sections) {
    const bool is_table =
        section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB;
    if (!is_table || section.sh_link >= sections.size()) continue;
    AddDefinedFunctions(ContentOf(file, section),
                        ContentOf(file, sections[section.sh_link]), found);
  }
  std::vector<std::string> defined;
  for (const std::string_view name : names) {
    if (found.contains(name)) defined.emplace_back(name);
  }
  return defined;
}

std::optional<std::uint64_t> FirstLoadAddress(const std::string& path) {
  std::ifstream file = OpenRegular(path);
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    if (segment.p_type == PT_LOAD) return segment.p_vaddr - segment.p_offset;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressLessOffset(const std::string& path,
                                               std::uint64_t offset) {
  constexpr std::uint64_t kPage = 4096;
  std::ifstream file = OpenRegular(path);
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    // Two segments may share a page of the file.
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        offset >= segment.p_offset / kPage * kPage &&
        offset < segment.p_offset + segment.p_filesz) {
      return segment.p_vaddr - segment.p_offset;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ExportedAddress(const std::string& path,
                                             std::string_view name) {
  std::ifstream file = OpenRegular(path);
  const std::vector<Elf64_Shdr> sections = SectionsOf(file);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) {
      continue;
    }
    const std::string content = ContentOf(file, section);
    const std::string names = ContentOf(file, sections[section.sh_link]);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= content.size();
         at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, content.data() + at, sizeof(symbol));
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names.size() &&
          names.c_str() + symbol.st_name == name) {
        return symbol.st_value;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> LoaderOf(const std::string& path) {
  std::ifstream file = OpenRegular(path);
  std::optional<std::string> loader;
  for (const Elf64_Phdr& segment : SegmentsOf(file)) {
    if (segment.p_type == PT_LOAD && !loader) loader = "";
    if (segment.p_type != PT_INTERP || segment.p_filesz > kMaxNoteBytes) {
      continue;
    }
    std::string name = ContentAt(file, segment.p_offset, segment.p_filesz);
    return name.c_str();
  }
  return loader;
}

std::map<std::uint64_t, std::uint64_t> FunctionRanges(const std::string& path) {
  std::ifstream file = OpenRegular(path);
  std::map<std::uint64_t, std::uint64_t> ranges;
  for (const Elf64_Shdr& section : SectionsOf(file)) {
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) {
      continue;
    }
    const std::string content = ContentOf(file, section);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= content.size();
         at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, content.data() + at, sizeof(symbol));
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || type > STT_FUNC ||
          type == STT_OBJECT) {
        continue;
      }
      std::uint64_t& end = ranges[symbol.st_value];
      end =
          std::max(end, symbol.st_size == 0 ? ~std::uint64_t{0}
                                            : symbol.st_value + symbol.st_size);
    }
  }
  return ranges;
}

}  // namespace hakmem::tools
