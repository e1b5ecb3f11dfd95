#include "allocator/stacks/symbols.h"

#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "allocator/base/system_call.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {
namespace {

using Header = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Entry = ElfW(Sym);

constexpr unsigned kMaxSections = 256;
constexpr std::uint64_t kMaxSymbols = std::uint64_t{1} << 20;

class File {
 public:
  explicit File(const char* path) {
    int error_number = 0;
    fd_ = ProcReader().Open(path, error_number);
  }
  ~File() {
    if (fd_ >= 0) SystemCall(SYS_close, fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // How many of the bytes there are.
  std::size_t ReadSome(std::uint64_t offset, void* to, std::size_t bytes) {
    const long got = SystemCall(SYS_pread64, fd_, to, bytes, offset);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  bool Read(std::uint64_t offset, void* to, std::size_t bytes) {
    return ReadSome(offset, to, bytes) == bytes;
  }

 private:
  int fd_;
};

bool FindTable(File& file, const Header& header, unsigned type,
               Section& table) {
  if (header.e_shentsize != sizeof(Section)) return false;
  for (unsigned i = 0; i < header.e_shnum && i < kMaxSections; ++i) {
    if (!file.Read(header.e_shoff + i * sizeof(Section), &table,
                   sizeof(table))) {
      return false;
    }
    if (table.sh_type == type && table.sh_entsize == sizeof(Entry)) return true;
  }
  return false;
}

// The function of the table that holds `place`, an address in the ELF file's
// own address space.
bool FindEntry(File& file, const Section& table, std::uintptr_t place,
               Entry& found) {
  constexpr unsigned kAtOnce = 80;
  Entry entries[kAtOnce];
  const std::uint64_t count = table.sh_size / sizeof(Entry);
  for (std::uint64_t at = 0; at < count && at < kMaxSymbols; at += kAtOnce) {
    const std::size_t got = file.ReadSome(table.sh_offset + at * sizeof(Entry),
                                          entries, sizeof(entries)) /
                            sizeof(Entry);
    for (std::size_t i = 0; i < got && at + i < count; ++i) {
      const Entry& entry = entries[i];
      const unsigned type = entry.st_info & 0xfU;
      if ((type == STT_FUNC || type == STT_GNU_IFUNC) &&
          entry.st_shndx != SHN_UNDEF &&
          place - entry.st_value < entry.st_size) {
        found = entry;
        return true;
      }
    }
    if (got < kAtOnce) return false;
  }
  return false;
}

bool ReadName(File& file, const Header& header, const Section& table,
              const Entry& entry, Symbol& symbol) {
  Section names;
  if (!file.Read(header.e_shoff + table.sh_link * sizeof(Section), &names,
                 sizeof(names)) ||
      entry.st_name >= names.sh_size) {
    return false;
  }
  const std::size_t got = file.ReadSome(names.sh_offset + entry.st_name,
                                        symbol.name, sizeof(symbol.name) - 1);
  symbol.name[got] = '\0';
  return symbol.name[0] != '\0';
}

// Whether the file begins as the module in memory does: another build has other
// sections at other places.
bool IsLoaded(const ModuleOf& module, const Header& header) {
  MemoryReader memory;
  Header loaded;
  return memory.Read(module.begin, &loaded, sizeof(loaded)) &&
         std::memcmp(&loaded, &header, sizeof(header)) == 0;
}

}  // namespace

bool FindSymbol(const ModuleOf& module, std::uintptr_t address,
                Symbol& symbol) {
  const ErrnoGuard guard;
  File file(module.path);
  Header header;
  if (!file.Read(0, &header, sizeof(header)) || !IsLoaded(module, header)) {
    return false;
  }
  const std::uintptr_t place = address - module.base;
  for (const unsigned type : {unsigned{SHT_SYMTAB}, unsigned{SHT_DYNSYM}}) {
    Section table;
    Entry entry;
    if (FindTable(file, header, type, table) &&
        FindEntry(file, table, place, entry) &&
        ReadName(file, header, table, entry, symbol)) {
      symbol.offset = place - entry.st_value;
      return true;
    }
  }
  return false;
}

}  // namespace hakmem
