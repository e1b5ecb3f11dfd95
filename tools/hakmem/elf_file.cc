#include "tools/hakmem/elf_file.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "tools/hakmem/debug_files.h"

namespace hakmem::tools {
namespace {

// Notes are short; more is damage.
constexpr std::uint64_t kMaxNoteBytes = 1 << 20;

constexpr GElf_Word kSymbolTables[] = {SHT_DYNSYM, SHT_SYMTAB};

constexpr std::size_t RoundedUp(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

// By libelf, which checks what it reads. Nothing is in what is no ELF file of
// this machine's kind.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(NamedFile::Open(path)) {
    ::elf_version(EV_CURRENT);
    elf_.reset(::elf_begin(file_.descriptor(), ELF_C_READ, nullptr));
    if (::gelf_getclass(elf_.get()) != ELFCLASS64) elf_.reset();
  }

  std::vector<GElf_Phdr> Segments() const {
    std::size_t count = 0;
    if (::elf_getphdrnum(elf_.get(), &count) != 0) count = 0;
    std::vector<GElf_Phdr> segments;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (::gelf_getphdr(elf_.get(), static_cast<int>(i), &segment) ==
          nullptr) {
        break;
      }
      segments.push_back(segment);
    }
    return segments;
  }

  // "": it is cut off, or longer than a note.
  std::string_view Content(const GElf_Phdr& segment) const {
    if (segment.p_filesz > kMaxNoteBytes) return "";
    const Elf_Data* const data = ::elf_getdata_rawchunk(
        elf_.get(), static_cast<std::int64_t>(segment.p_offset),
        segment.p_filesz, ELF_T_BYTE);
    if (data == nullptr || data->d_buf == nullptr) return "";
    return {static_cast<const char*>(data->d_buf), data->d_size};
  }

  // Calls work(symbol, name) for what the file defines, in tables of `type`.
  template <typename Work>
  void ForEachSymbol(GElf_Word type, Work work) const {
    if (elf_ == nullptr) return;
    for (Elf_Scn* at = nullptr;
         (at = ::elf_nextscn(elf_.get(), at)) != nullptr;) {
      GElf_Shdr section;
      if (::gelf_getshdr(at, &section) == nullptr || section.sh_type != type) {
        continue;
      }
      Elf_Data* const data = ::elf_getdata(at, nullptr);
      GElf_Sym symbol;
      for (int i = 0; ::gelf_getsym(data, i, &symbol) != nullptr; ++i) {
        const char* const name =
            ::elf_strptr(elf_.get(), section.sh_link, symbol.st_name);
        if (name != nullptr && symbol.st_shndx != SHN_UNDEF) work(symbol, name);
      }
    }
  }

 private:
  struct End {
    void operator()(Elf* elf) const { ::elf_end(elf); }
  };

  NamedFile file_;
  std::unique_ptr<Elf, End> elf_;
};

}  // namespace

std::optional<std::string_view> FindNote(std::string_view notes,
                                         std::string_view name,
                                         std::uint32_t type) {
  std::optional<std::string_view> found;
  ForEachNote(notes, [&](const Note& note) {
    if (!found && note.type == type && note.name == name) found = note.content;
  });
  return found;
}

void ForEachNote(std::string_view notes,
                 const std::function<void(const Note&)>& work) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const std::size_t name_bytes = RoundedUp(header.n_namesz);
    if (name_bytes > notes.size() ||
        header.n_descsz > notes.size() - name_bytes) {
      break;
    }
    // The name's zero is part of it.
    const std::string_view name =
        notes.substr(0, std::max<std::size_t>(header.n_namesz, 1) - 1);
    work({header.n_type, name, notes.substr(name_bytes, header.n_descsz)});
    notes.remove_prefix(
        std::min(notes.size(), name_bytes + RoundedUp(header.n_descsz)));
  }
}

std::string BuildIdInNotes(std::string_view notes) {
  return absl::BytesToHexString(
      FindNote(notes, "GNU", NT_GNU_BUILD_ID).value_or(""));
}

std::string BuildIdOfFile(const std::string& path) {
  const ElfFile file(path);
  for (const GElf_Phdr& segment : file.Segments()) {
    if (segment.p_type != PT_NOTE) continue;
    const std::string build_id = BuildIdInNotes(file.Content(segment));
    if (!build_id.empty()) return build_id;
  }
  return "";
}

std::vector<std::string> DefinedFunctions(
    const std::string& path, const std::vector<std::string_view>& names) {
  const ElfFile file(path);
  std::set<std::string, std::less<>> found;
  for (const GElf_Word table : kSymbolTables) {
    file.ForEachSymbol(table, [&](const GElf_Sym& symbol, const char* name) {
      const unsigned type = GELF_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC || type == STT_GNU_IFUNC) found.emplace(name);
    });
  }
  std::vector<std::string> defined;
  for (const std::string_view name : names) {
    if (found.contains(name)) defined.emplace_back(name);
  }
  return defined;
}

std::optional<std::uint64_t> FirstLoadAddress(const std::string& path) {
  for (const GElf_Phdr& segment : ElfFile(path).Segments()) {
    if (segment.p_type == PT_LOAD) return segment.p_vaddr - segment.p_offset;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressLessOffset(const std::string& path,
                                               std::uint64_t offset) {
  constexpr std::uint64_t kPage = 4096;
  for (const GElf_Phdr& segment : ElfFile(path).Segments()) {
    // Two segments may share a page of the file.
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
        offset >= segment.p_offset / kPage * kPage &&
        offset < segment.p_offset + segment.p_filesz) {
      return segment.p_vaddr - segment.p_offset;
    }
  }
  return std::nullopt;
}

std::optional<std::string> LoaderOf(const std::string& path) {
  const ElfFile file(path);
  std::optional<std::string> loader;
  for (const GElf_Phdr& segment : file.Segments()) {
    if (segment.p_type == PT_LOAD && !loader) loader = "";
    if (segment.p_type != PT_INTERP) continue;
    const std::string_view name = file.Content(segment);
    return std::string(name.substr(0, name.find('\0')));
  }
  return loader;
}

}  // namespace hakmem::tools
