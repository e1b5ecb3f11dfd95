#include "allocator/stacks/symbolic_operators.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"

namespace hakmem {
namespace {

using Dynamic = ElfW(Dyn);
using Entry = ElfW(Sym);

constexpr unsigned kMaxDynamicEntries = 256;
constexpr unsigned kMaxChainLength = 256;
constexpr std::size_t kNameBytes = sizeof("_ZdlPv");
// new, new[], delete, delete[], which the other forms call.
constexpr char kOperators[][kNameBytes] = {"_Znwm", "_Znam", "_ZdlPv",
                                           "_ZdaPv"};

struct DynamicTables {
  bool symbolic = false;
  std::uintptr_t hash = 0;
  std::uintptr_t symbols = 0;
  std::uintptr_t names = 0;
};

// False: it was the last entry.
bool Note(const Dynamic& entry, std::uintptr_t base, DynamicTables& tables) {
  // Most loaders add the base in place, some do not.
  const std::uintptr_t value = entry.d_un.d_ptr;
  const std::uintptr_t address = value < base ? base + value : value;
  switch (entry.d_tag) {
    case DT_NULL:
      return false;
    case DT_SYMBOLIC:
      tables.symbolic = true;
      break;
    case DT_FLAGS:
      if ((entry.d_un.d_val & DF_SYMBOLIC) != 0) tables.symbolic = true;
      break;
    case DT_GNU_HASH:
      tables.hash = address;
      break;
    case DT_SYMTAB:
      tables.symbols = address;
      break;
    case DT_STRTAB:
      tables.names = address;
      break;
    default:
      break;
  }
  return true;
}

DynamicTables ReadTables(MemoryReader& memory, const link_map& library) {
  constexpr unsigned kAtOnce = 32;
  Dynamic entries[kAtOnce];
  DynamicTables tables;
  auto at = reinterpret_cast<std::uintptr_t>(library.l_ld);
  for (unsigned read = 0; read < kMaxDynamicEntries;) {
    // Memory may end behind the last entry.
    unsigned count = kAtOnce;
    if (!memory.Read(at, entries, sizeof(entries))) {
      count = 1;
      if (!memory.Read(at, entries, sizeof(Dynamic))) return tables;
    }
    for (unsigned i = 0; i < count; ++i) {
      if (!Note(entries[i], library.l_addr, tables)) return tables;
    }
    read += count;
    at += count * sizeof(Dynamic);
  }
  return tables;
}

std::uint32_t HashOf(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

bool IsDefinition(MemoryReader& memory, const DynamicTables& tables,
                  std::uint32_t index, const char* name) {
  Entry entry;
  char found[kNameBytes];
  return memory.Read(tables.symbols + index * sizeof(entry), &entry,
                     sizeof(entry)) &&
         entry.st_shndx != SHN_UNDEF &&
         memory.Read(tables.names + entry.st_name, found,
                     std::strlen(name) + 1) &&
         std::memcmp(found, name, std::strlen(name) + 1) == 0;
}

bool Defines(MemoryReader& memory, const DynamicTables& tables,
             const char* name) {
  struct {
    std::uint32_t buckets;
    std::uint32_t first_symbol;
    std::uint32_t filter_words;
    std::uint32_t filter_shift;
  } table;
  if (!memory.Read(tables.hash, &table, sizeof(table)) || table.buckets == 0) {
    return false;
  }
  const std::uintptr_t buckets =
      tables.hash + sizeof(table) + table.filter_words * sizeof(ElfW(Addr));
  const std::uintptr_t chains = buckets + table.buckets * sizeof(std::uint32_t);
  const std::uint32_t hash = HashOf(name);
  std::uint32_t index = 0;
  if (!memory.Read(buckets + hash % table.buckets * sizeof(index), &index,
                   sizeof(index)) ||
      index < table.first_symbol) {
    return false;
  }
  for (unsigned i = 0; i < kMaxChainLength; ++i, ++index) {
    std::uint32_t link = 0;
    if (!memory.Read(chains + (index - table.first_symbol) * sizeof(link),
                     &link, sizeof(link))) {
      return false;
    }
    // The lowest bit ends the chain.
    if ((link | 1U) == (hash | 1U) &&
        IsDefinition(memory, tables, index, name)) {
      return true;
    }
    if ((link & 1U) != 0) return false;
  }
  return false;
}

bool IsOwnModule(const link_map& library) {
  ModuleRange range;
  return FindModuleRange(reinterpret_cast<std::uintptr_t>(&IsOwnModule),
                         range) &&
         range.base == library.l_addr;
}

bool HasOperators(MemoryReader& memory, const link_map& library) {
  const DynamicTables tables = ReadTables(memory, library);
  if (!tables.symbolic || tables.hash == 0 || tables.symbols == 0 ||
      tables.names == 0) {
    return false;
  }
  for (const auto& name : kOperators) {
    if (Defines(memory, tables, name)) return !IsOwnModule(library);
  }
  return false;
}

}  // namespace

bool HasSymbolicOperators() { return HasLibrary(&HasOperators); }

}  // namespace hakmem
