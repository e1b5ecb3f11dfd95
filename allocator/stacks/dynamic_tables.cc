#include "allocator/stacks/dynamic_tables.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "allocator/base/check.h"

namespace hakmem {
namespace {

using Dynamic = ElfW(Dyn);
using Entry = ElfW(Sym);

constexpr unsigned kMaxDynamicEntries = 256;
constexpr unsigned kMaxChainLength = 256;
constexpr std::size_t kNameBytes = sizeof("_thread_db_pthread_tid");

// False: it was the last entry.
bool Note(const Dynamic& entry, DynamicTables& tables) {
  // Most loaders add the base in place, some do not.
  const std::uintptr_t value = entry.d_un.d_ptr;
  const std::uintptr_t address =
      value < tables.base ? tables.base + value : value;
  switch (entry.d_tag) {
    case DT_NULL:
      return false;
    case DT_SYMBOLIC:
      tables.symbolic = true;
      break;
    case DT_FLAGS:
      if ((entry.d_un.d_val & DF_SYMBOLIC) != 0) tables.symbolic = true;
      break;
    case DT_NEEDED:
      if (tables.needed_count < DynamicTables::kMaxNeeded) {
        tables.needed[tables.needed_count++] = value;
      }
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

std::uint32_t HashOf(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + static_cast<unsigned char>(*name);
  }
  return hash;
}

// Its address, if the symbol with this number defines the name; else 0.
std::uintptr_t Definition(MemoryReader& memory, const DynamicTables& tables,
                          std::uint32_t index, const char* name) {
  Entry entry;
  char found[kNameBytes];
  const std::size_t bytes = std::strlen(name) + 1;
  HAK_CHECK_LE(bytes, sizeof(found));
  const bool defines =
      memory.Read(tables.symbols + index * sizeof(entry), &entry,
                  sizeof(entry)) &&
      // An indirect function's address is not what callers get.
      entry.st_shndx != SHN_UNDEF && (entry.st_info & 0xfU) != STT_GNU_IFUNC &&
      memory.Read(tables.names + entry.st_name, found, bytes) &&
      std::memcmp(found, name, bytes) == 0;
  return defines ? tables.base + entry.st_value : 0;
}

}  // namespace

DynamicTables ReadDynamicTables(MemoryReader& memory, std::uintptr_t base,
                                std::uintptr_t dynamic) {
  constexpr unsigned kAtOnce = 32;
  Dynamic entries[kAtOnce];
  DynamicTables tables = {.base = base};
  std::uintptr_t at = dynamic;
  for (std::size_t read = 0; read < kMaxDynamicEntries;) {
    // Memory may end with a page behind the last entry.
    const std::size_t in_page =
        (kSmallestPageBytes - at % kSmallestPageBytes) / sizeof(Dynamic);
    const std::size_t count = std::clamp<std::size_t>(in_page, 1, kAtOnce);
    if (!memory.Read(at, entries, count * sizeof(Dynamic))) return tables;
    for (std::size_t i = 0; i < count; ++i) {
      if (!Note(entries[i], tables)) return tables;
    }
    read += count;
    at += count * sizeof(Dynamic);
  }
  return tables;
}

std::uintptr_t FindDefinition(MemoryReader& memory, const DynamicTables& tables,
                              const char* name) {
  struct {
    std::uint32_t buckets;
    std::uint32_t first_symbol;
    std::uint32_t filter_words;
    std::uint32_t filter_shift;
  } table;
  if (!memory.Read(tables.hash, &table, sizeof(table)) || table.buckets == 0) {
    return 0;
  }
  const std::uintptr_t buckets =
      tables.hash + sizeof(table) + table.filter_words * sizeof(ElfW(Addr));
  const std::uintptr_t chains = buckets + table.buckets * sizeof(std::uint32_t);
  const std::uint32_t hash = HashOf(name);
  std::uint32_t index = 0;
  if (!memory.Read(buckets + hash % table.buckets * sizeof(index), &index,
                   sizeof(index)) ||
      index < table.first_symbol) {
    return 0;
  }
  for (unsigned i = 0; i < kMaxChainLength; ++i, ++index) {
    std::uint32_t link = 0;
    if (!memory.Read(chains + (index - table.first_symbol) * sizeof(link),
                     &link, sizeof(link))) {
      return 0;
    }
    // The lowest bit ends the chain.
    if ((link | 1U) == (hash | 1U)) {
      const std::uintptr_t found = Definition(memory, tables, index, name);
      if (found != 0) return found;
    }
    if ((link & 1U) != 0) return 0;
  }
  return 0;
}

}  // namespace hakmem
