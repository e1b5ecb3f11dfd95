#include "allocator/stacks/own_operators.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/dynamic_tables.h"
#include "allocator/stacks/modules.h"

namespace hakmem {
namespace {

// new, new[], delete, delete[], which the other forms call.
constexpr char kOperators[][sizeof("_ZdlPv")] = {"_Znwm", "_Znam", "_ZdlPv",
                                                 "_ZdaPv"};
// How the names of libraries begin that hold a C++ runtime for all to use.
constexpr char kRuntimes[][sizeof("libstdc++.so")] = {"libstdc++.so", "libc++"};
// The name of a type that only a runtime defines, as nothing else holds it:
// what uses the type has a symbol whose name is longer.
constexpr char kRuntimeType[] = "\0St9bad_alloc";

bool ExportsOperators(MemoryReader& memory, const DynamicTables& tables) {
  return std::ranges::any_of(kOperators, [&](const char* name) {
    return FindDefinition(memory, tables, name) != 0;
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
  const DynamicTables tables =
      ReadDynamicTables(memory, module.base, module.dynamic);
  if (!tables.complete()) return false;
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
