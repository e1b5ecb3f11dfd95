#include "allocator/stacks/own_operators.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <atomic>
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
constexpr unsigned kMaxNeeded = 64;
constexpr std::size_t kNameBytes = sizeof("_ZdlPv");
// new, new[], delete, delete[], which the other forms call.
constexpr char kOperators[][kNameBytes] = {"_Znwm", "_Znam", "_ZdlPv",
                                           "_ZdaPv"};
// How the names of libraries begin that hold a C++ runtime for all to use.
constexpr char kRuntimes[][sizeof("libstdc++.so")] = {"libstdc++.so", "libc++"};
// The name of a type that only a runtime defines, as nothing else holds it:
// what uses the type has a symbol whose name is longer.
constexpr char kRuntimeType[] = "\0St9bad_alloc";

struct DynamicTables {
  bool symbolic = false;
  unsigned needed_count = 0;
  std::uintptr_t needed[kMaxNeeded] = {};  // where in `names`
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
    case DT_NEEDED:
      if (tables.needed_count < kMaxNeeded) {
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

DynamicTables ReadTables(MemoryReader& memory, const LoadedModule& module) {
  constexpr unsigned kAtOnce = 32;
  Dynamic entries[kAtOnce];
  DynamicTables tables;
  std::uintptr_t at = module.dynamic;
  for (unsigned read = 0; read < kMaxDynamicEntries;) {
    // Memory may end behind the last entry.
    unsigned count = kAtOnce;
    if (!memory.Read(at, entries, sizeof(entries))) {
      count = 1;
      if (!memory.Read(at, entries, sizeof(Dynamic))) return tables;
    }
    for (unsigned i = 0; i < count; ++i) {
      if (!Note(entries[i], module.base, tables)) return tables;
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

bool ExportsOperators(MemoryReader& memory, const DynamicTables& tables) {
  return std::ranges::any_of(kOperators, [&](const auto& name) {
    return Defines(memory, tables, name);
  });
}

bool NeedsRuntime(MemoryReader& memory, const DynamicTables& tables) {
  return std::any_of(
      tables.needed, tables.needed + tables.needed_count,
      [&](std::uintptr_t offset) {
        char name[sizeof(kRuntimes[0])];
        return memory.Read(tables.names + offset, name, sizeof(name)) &&
               std::ranges::any_of(kRuntimes, [&](const auto& runtime) {
                 return std::strncmp(name, runtime, std::strlen(runtime)) == 0;
               });
      });
}

// Whether the module's constants, as far as they can be read, hold a runtime's.
// They lie in one segment with the table of how to unwind.
bool HoldsRuntime(MemoryReader& memory, const LoadedModule& module) {
  constexpr std::size_t kAtOnceBytes = 4096;
  char bytes[sizeof(kRuntimeType) - 1 + kAtOnceBytes];
  std::size_t kept_bytes = 0;
  std::size_t read_bytes = 0;
  for (std::uintptr_t at = module.table_begin; at < module.table_end;
       at += read_bytes) {
    read_bytes = std::min(kAtOnceBytes, module.table_end - at);
    if (!memory.Read(at, bytes + kept_bytes, read_bytes)) return false;
    const std::size_t count = kept_bytes + read_bytes;
    if (memmem(bytes, count, kRuntimeType, sizeof(kRuntimeType)) != nullptr) {
      return true;
    }
    // The name may go on in what is read next.
    kept_bytes = std::min(count, sizeof(kRuntimeType) - 1);
    std::memmove(bytes, bytes + count - kept_bytes, kept_bytes);
  }
  return false;
}

bool HasOperators(MemoryReader& memory, const LoadedModule& module, void*) {
  const auto own = reinterpret_cast<std::uintptr_t>(&HasOperators);
  if (own - module.begin < module.end - module.begin) return false;
  const DynamicTables tables = ReadTables(memory, module);
  if (tables.hash == 0 || tables.symbols == 0 || tables.names == 0) {
    return false;
  }
  if (ExportsOperators(memory, tables)) return tables.symbolic;
  return !NeedsRuntime(memory, tables) && HoldsRuntime(memory, module);
}

// Adds what tells a module from another that is loaded elsewhere.
bool AddModule(MemoryReader&, const LoadedModule& module, void* sum) {
  *static_cast<std::uintptr_t*>(sum) += module.base ^ (module.dynamic << 1U);
  return false;
}

// The sum of the modules of which none had operators. Written and read by
// whoever asks: each looks by itself where it is another's.
constinit std::atomic<std::uintptr_t> g_without_operators{0};

}  // namespace

bool HasOwnOperators() {
  std::uintptr_t sum = 0;
  HasModule(&AddModule, &sum);
  if (sum == g_without_operators.load(std::memory_order_relaxed)) return false;
  if (HasModule(&HasOperators, nullptr)) return true;
  g_without_operators.store(sum, std::memory_order_relaxed);
  return false;
}

}  // namespace hakmem
