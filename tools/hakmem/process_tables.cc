// How hakmem is found in a process's memory.

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/config/table_list.h"
#include "allocator/statistics/statistics_tables.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {
namespace {

constexpr std::uint64_t kMaxNotesBytes = 1 << 20;
constexpr char kMagic[8] = "haktabs";
// In the list's order.
constexpr std::string_view kTables[TableList::kTables] = {
    "hakmem_failure_ring", "hakmem_heap_tables", "hakmem_statistics_tables",
    "hakmem_block_tables", "hakmem_control",     "hakmem_options"};
constexpr std::size_t kStatistics = 2;

std::uint64_t PlaceInList(std::size_t table) {
  return offsetof(TableList, failure_ring) + sizeof(void*) * table;
}

// Of the ELF file that begins there in memory; none: there is none.
std::vector<Elf64_Phdr> SegmentsAt(const ProcessImage& image,
                                   std::uint64_t begin) {
  std::vector<Elf64_Phdr> segments;
  Elf64_Ehdr header = {};
  if (!image.Read(begin, &header, sizeof(header)).ok() ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return segments;
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    const std::uint64_t at = begin + header.e_phoff + i * sizeof(segment);
    if (!image.Read(at, &segment, sizeof(segment)).ok()) break;
    segments.push_back(segment);
  }
  return segments;
}

std::optional<std::uint64_t> DistanceMoved(
    const std::vector<Elf64_Phdr>& segments, std::uint64_t begin) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    return begin - (segment.p_vaddr - segment.p_offset);
  }
  return std::nullopt;
}

// A program may map a part of its code once more, elsewhere: node does with its
// own functions. Nothing: the part lies where the others do.
std::optional<std::uint64_t> MovedByItself(
    const std::vector<Elf64_Phdr>& segments, const MappedFile& file,
    std::uint64_t moved) {
  std::optional<std::uint64_t> by_itself;
  for (const Elf64_Phdr& segment : segments) {
    const std::uint64_t first = segment.p_offset & ~std::uint64_t{4095};
    if (segment.p_type != PT_LOAD || file.offset < first ||
        file.offset >= segment.p_offset + segment.p_filesz) {
      continue;
    }
    const std::uint64_t here =
        file.begin - (file.offset + segment.p_vaddr - segment.p_offset);
    if (here == moved) return std::nullopt;
    if ((segment.p_flags & PF_X) != 0) by_itself = here;
  }
  return by_itself;
}

}  // namespace

std::vector<ProcessImage::Notes> ProcessImage::NotesOf(
    const MappedFile& beginning) const {
  std::vector<Notes> notes;
  const std::vector<Elf64_Phdr> segments = SegmentsAt(*this, beginning.begin);
  const std::uint64_t moved =
      DistanceMoved(segments, beginning.begin).value_or(0);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotesBytes) {
      continue;
    }
    Notes part = {moved + segment.p_vaddr, std::string(segment.p_filesz, '\0')};
    if (Read(part.address, part.content.data(), part.content.size()).ok()) {
      notes.push_back(std::move(part));
    }
  }
  return notes;
}

std::uint64_t ProcessImage::MovedBy(const MappedFile& file) const {
  // A file may be loaded twice, or mapped once more as it is, to be read: what
  // begins last before this part of it is what it was loaded with.
  const MappedFile* first = nullptr;
  for (const MappedFile& other : files_) {
    if (other.begin > file.begin) break;
    if (other.path == file.path && other.offset == 0) first = &other;
  }
  if (first == nullptr) return file.begin - file.offset;
  const std::vector<Elf64_Phdr> segments = SegmentsAt(*this, first->begin);
  // The file on disk may be gone, or another one.
  const std::uint64_t moved =
      DistanceMoved(segments, first->begin)
          .value_or(first->begin - FirstLoadAddress(first->source).value_or(0));
  return MovedByItself(segments, file, moved).value_or(moved);
}

std::string ProcessImage::BuildIdOf(const MappedFile& file) const {
  const auto first =
      std::ranges::find_if(files_, [&file](const MappedFile& other) {
        return other.path == file.path && other.offset == 0;
      });
  if (first != files_.end()) {
    for (const Notes& part : NotesOf(*first)) {
      std::string build_id = BuildIdInNotes(part.content);
      if (!build_id.empty()) return build_id;
    }
  }
  return is_core_ ? "" : BuildIdOfFile(file.source);
}

void ProcessImage::FindCopies() const {
  copies_.emplace();
  for (const MappedFile& file : files_) {
    if (file.offset != 0) continue;
    for (const Notes& part : NotesOf(file)) {
      const std::optional<std::string_view> content =
          FindNote(part.content, TableList::kNoteName, TableList::kNoteType);
      std::uint64_t distance = 0;
      if (!content || content->size() < sizeof(distance)) continue;
      std::memcpy(&distance, content->data(), sizeof(distance));
      const std::uint64_t list =
          part.address + distance +
          static_cast<std::uint64_t>(content->data() - part.content.data());
      char magic[sizeof(kMagic)] = {};
      if (Read(list, magic, sizeof(magic)).ok() &&
          std::memcmp(magic, kMagic, sizeof(magic)) == 0) {
        copies_->push_back({list, file.path});
      }
    }
  }
}

bool ProcessImage::Serves(const Copy& copy) const {
  std::uint64_t tables = 0;
  std::uint64_t heap_count = 0;
  std::uint32_t heaps = 0;
  return Read(copy.list + PlaceInList(kStatistics), &tables, sizeof(tables))
             .ok() &&
         Read(tables + offsetof(StatisticsTables, heap_count), &heap_count,
              sizeof(heap_count))
             .ok() &&
         Read(heap_count, &heaps, sizeof(heaps)).ok() && heaps != 0;
}

absl::StatusOr<const ProcessImage::Copy*> ProcessImage::OnlyCopy() const {
  if (!copies_) FindCopies();
  if (copies_->empty()) return nullptr;
  const Copy* serving = nullptr;
  if (copies_->size() > 1) {
    for (const Copy& copy : *copies_) {
      if (!Serves(copy)) continue;
      if (serving != nullptr) {
        return absl::FailedPreconditionError(absl::StrCat(
            "there are two copies of hakmem in ", Who(),
            ", and both serve it: ", serving->path, " and ", copy.path));
      }
      serving = &copy;
    }
  }
  return serving == nullptr ? &copies_->front() : serving;
}

absl::Status ProcessImage::UnknownForm(std::string_view what) const {
  return absl::FailedPreconditionError(
      absl::StrCat("the hakmem of ", Who(), " ", what,
                   " in a form that this command does not know; use the "
                   "command that was built with that library"));
}

absl::StatusOr<std::uint64_t> ProcessImage::FindTables(
    std::string_view name, std::string_view lack) const {
  const absl::StatusOr<const Copy*> copy = OnlyCopy();
  if (!copy.ok()) return copy.status();
  if (*copy == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no hakmem in ", Who()));
  }
  TableList list = {};
  absl::Status status =
      Read((*copy)->list, &list, offsetof(TableList, failure_ring));
  if (status.ok() && list.version != TableList::kVersion) {
    return UnknownForm("lists its tables");
  }
  const std::size_t table = static_cast<std::size_t>(
      std::ranges::find(kTables, name) - std::begin(kTables));
  std::uint64_t address = 0;
  if (status.ok() && table < list.tables) {
    status =
        Read((*copy)->list + PlaceInList(table), &address, sizeof(address));
  }
  if (!status.ok()) return status;
  if (address != 0) return address;
  return absl::NotFoundError(absl::StrCat(
      "the hakmem of ", Who(), " is older than this command: ", lack));
}

}  // namespace hakmem::tools
