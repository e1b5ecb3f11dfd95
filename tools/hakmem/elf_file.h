// What the tools have to know of an ELF file on disk.
#ifndef HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_
#define HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hakmem::tools {

// The build id in lower-case hexadecimal; "" for a file that has none, cannot
// be read or is no ELF file of this machine's kind.
std::string BuildIdOfFile(const std::string& path);

struct Note {
  std::uint32_t type = 0;
  std::string_view name;
  std::string_view content;
};
// Calls the function for each note of a segment, as far as they are whole.
void ForEachNote(std::string_view notes,
                 const std::function<void(const Note&)>& work);

// The content of a note, by its name and type, in a segment of notes; nothing:
// there is none.
std::optional<std::string_view> FindNote(std::string_view notes,
                                         std::string_view name,
                                         std::uint32_t type);
// In a segment of notes; "": there is none.
std::string BuildIdInNotes(std::string_view notes);

// Which program loads this one and its libraries; "" for one that is linked
// statically; nothing: it is no program.
std::optional<std::string> LoaderOf(const std::string& path);

// Which of `names` the file defines as functions that others can call or that
// its own symbol table has, in their order.
std::vector<std::string> DefinedFunctions(
    const std::string& path, const std::vector<std::string_view>& names);

// Where the file's first loaded segment begins, as the file says: what a
// loader adds is the difference to where its first page was mapped.
std::optional<std::uint64_t> FirstLoadAddress(const std::string& path);

// By how much addresses, as the file says, exceed the file's offsets in the
// code that a mapping of the file from this offset on has.
std::optional<std::uint64_t> AddressLessOffset(const std::string& path,
                                               std::uint64_t offset);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_
