#include "allocator/stacks/startup_modules.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/dynamic_tables.h"
#include "allocator/stacks/own_stack.h"

// The loader's list, for debuggers. glibc's alone, so the reference is weak.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern HAK_WEAK r_debug _r_debug;

namespace hakmem {
namespace {

constexpr unsigned kMaxModules = 128;

// Sorted by where they begin. Written by the constructor; read by all, as far
// as g_count says.
constinit ModuleRange g_ranges[kMaxModules] = {};
constinit std::atomic<unsigned> g_count{0};

bool IsIn(std::uintptr_t address, const ModuleRange& range) {
  return address - range.begin < range.end - range.begin;
}

// How many of the list's first `count` entries SM1 is true of. `loader`: where
// it begins.
unsigned CountAtStartup(unsigned count, std::uintptr_t loader) {
  const auto own = reinterpret_cast<std::uintptr_t>(&CountAtStartup);
  for (unsigned i = 0; i < count; ++i) {
    if (IsIn(own, g_ranges[i])) return count;
    if (IsIn(loader, g_ranges[i])) break;
  }
  return count == 0 ? 0 : 1;
}

// What _dl_find_object of glibc 2.35 fills in.
struct FoundObject {
  unsigned long long flags;
  void* begin;
  void* end;
  link_map* module;
  void* unwind_table;
  unsigned long long reserved[7];
};
using Search = int (*)(void* address, FoundObject* found);

// Where it is. Written by whoever is first, always with the same value; read by
// all.
constexpr std::uintptr_t kNotAsked = 0;
constexpr std::uintptr_t kNoSearch = 1;
constinit std::atomic<std::uintptr_t> g_search{kNotAsked};

// Null: there is none. A reference to _dl_find_object, weak or not, would make
// the library refuse to be loaded by an older libc.
Search LibcSearch() {
  std::uintptr_t search = g_search.load(std::memory_order_relaxed);
  if (search == kNotAsked) {
    search = std::max(FindInLibc("_dl_find_object"), kNoSearch);
    g_search.store(search, std::memory_order_relaxed);
  }
  return search == kNoSearch ? nullptr : reinterpret_cast<Search>(search);
}

}  // namespace

// The list is read up to libc's entry alone, which was there at the start.
std::uintptr_t FindInLibc(const char* name) {
  if (&_r_debug == nullptr || _r_debug.r_ldbase == 0) return 0;
  const link_map* map = _r_debug.r_map;
  while (map != nullptr &&
         (map->l_name == nullptr ||
          !std::string_view(map->l_name).ends_with("/libc.so.6"))) {
    map = map->l_next;
  }
  if (map == nullptr) return 0;
  // Its tables are all there, and right.
  MemoryReader memory(0, UINTPTR_MAX);
  const DynamicTables tables = ReadDynamicTables(
      memory, map->l_addr, reinterpret_cast<std::uintptr_t>(map->l_ld));
  return tables.complete() ? FindDefinition(memory, tables, name) : 0;
}

void NoteStartupModules() {
  struct Noted {
    unsigned count = 0;
    std::uintptr_t loader = 0;
  };
  Noted noted;
  if (g_count.load(std::memory_order_relaxed) != 0) return;
  if (&_r_debug != nullptr) noted.loader = _r_debug.r_ldbase;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        Noted& to = *static_cast<Noted*>(context);
        if (to.count == kMaxModules) return 1;
        g_ranges[to.count++] =
            RangeOfSegments(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
        return 0;
      },
      &noted);
  const unsigned count = CountAtStartup(noted.count, noted.loader);
  std::sort(g_ranges, g_ranges + count,
            [](const ModuleRange& a, const ModuleRange& b) {
              return a.begin < b.begin;
            });
  // release: pairs with the acquire in FindStartupModule: who sees the count
  // sees the ranges.
  g_count.store(count, std::memory_order_release);
  NoteStacks();
}

bool FindStartupModule(std::uintptr_t address, ModuleRange& range) {
  // acquire: pairs with the release in NoteStartupModules.
  const unsigned count = g_count.load(std::memory_order_acquire);
  const ModuleRange* const behind =
      std::upper_bound(g_ranges, g_ranges + count, address,
                       [](std::uintptr_t place, const ModuleRange& each) {
                         return place < each.begin;
                       });
  if (behind == g_ranges || !IsIn(address, behind[-1])) return false;
  range = behind[-1];
  return true;
}

bool FindModuleDirectly(std::uintptr_t address, bool runs, ModuleRange& range) {
  const Search search = LibcSearch();
  if (search == nullptr) return FindStartupModule(address, range);
  FoundObject found;
  if (search(reinterpret_cast<void*>(address), &found) != 0) return false;
  const auto table = reinterpret_cast<std::uintptr_t>(found.unwind_table);
  // One may have come and gone before the constructor ran. Of a module with
  // gaps between its segments libc tells where the segment begins.
  if (FindStartupModule(address, range) && range.unwind_table == table) {
    return true;
  }
  range = {};
  if (runs) {
    // Its header is where it begins; of a module whose file begins elsewhere
    // in its own address space nothing is told.
    const auto begin = reinterpret_cast<std::uintptr_t>(found.begin);
    MemoryReader memory(begin, begin + kSmallestPageBytes);
    range = ReadModuleRange(memory, begin);
    if (range.unwind_table != table) range = {};
  }
  return true;
}

}  // namespace hakmem
