// jemalloc's mallctl, with the names whose answers programs rely on, and
// malloc_stats_print (docs/other_mallocs.md). The calls that allocate are in
// jemalloc_symbols.inc.
//
// hakmem has one arena, number 0; those that programs create are numbers alone.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/base/raw_print.h"
#include "allocator/core/live_count.h"
#include "allocator/frontend/current_product.h"
#include "allocator/process/process.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {
namespace {

// MALLCTL_ARENAS_ALL.
constexpr std::size_t kAllArenas = 4096;

enum class Answer : std::uint8_t {
  kVersion,
  kNone,
  kZero,
  kOne,
  kPageBytes,
  kAllocated,
  kAllocatedPages,
  kResident,
  kMapped,
  kMetadata,
  kPurge,
};

struct Name {
  // A component # is a number: an arena's.
  char pattern[31];
  Answer answer;
  std::uint8_t read_bytes;  // of the value; 0: it is not to be read
  std::uint8_t write_bytes;
};

constexpr Name kNames[] = {
    {"version", Answer::kVersion, sizeof(const char*), 0},
    {"epoch", Answer::kOne, sizeof(std::uint64_t), sizeof(std::uint64_t)},
    {"arena.#.purge", Answer::kPurge, 0, 0},
    {"arenas.create", Answer::kOne, sizeof(unsigned), 0},
    {"arenas.narenas", Answer::kOne, sizeof(unsigned), 0},
    {"arenas.nbins", Answer::kZero, sizeof(unsigned), 0},
    {"arenas.page", Answer::kPageBytes, sizeof(std::size_t), 0},
    {"stats.active", Answer::kAllocated, sizeof(std::size_t), 0},
    {"stats.allocated", Answer::kAllocated, sizeof(std::size_t), 0},
    {"stats.mapped", Answer::kMapped, sizeof(std::size_t), 0},
    {"stats.metadata", Answer::kMetadata, sizeof(std::size_t), 0},
    {"stats.resident", Answer::kResident, sizeof(std::size_t), 0},
    {"stats.retained", Answer::kZero, sizeof(std::size_t), 0},
    {"stats.arenas.#.large.allocated", Answer::kZero, sizeof(std::size_t), 0},
    {"stats.arenas.#.pactive", Answer::kAllocatedPages, sizeof(std::size_t), 0},
    {"stats.arenas.#.pmuzzy", Answer::kZero, sizeof(std::size_t), 0},
    {"stats.arenas.#.small.allocated", Answer::kAllocated, sizeof(std::size_t),
     0},
    {"tcache.create", Answer::kZero, sizeof(unsigned), 0},
    {"tcache.destroy", Answer::kNone, 0, sizeof(unsigned)},
    {"tcache.flush", Answer::kNone, 0, sizeof(unsigned)},
    {"thread.tcache.flush", Answer::kNone, 0, 0},
};
constexpr std::size_t kNameCount = std::size(kNames);
constexpr std::size_t kMostComponents = 5;

// A name as mallctlnametomib writes it, one number for each component: the
// first is which of the names, the others are 0 where there is none.
struct Path {
  std::size_t at[kMostComponents] = {};
  std::size_t length = 0;

  // The arena, where the name has one.
  std::size_t arena() const { return length == 3 ? at[1] : at[2]; }
};

std::string_view TakeComponent(std::string_view& name) {
  const std::size_t end = std::min(name.find('.'), name.size());
  const std::string_view component = name.substr(0, end);
  name.remove_prefix(std::min(end + 1, name.size()));
  return component;
}

bool Match(std::string_view pattern, std::string_view name, Path& path) {
  path = {};
  while (!pattern.empty() && !name.empty()) {
    const std::string_view wanted = TakeComponent(pattern);
    const std::string_view component = TakeComponent(name);
    std::uint64_t number = 0;
    if (wanted == "#" ? !ParseDecimal(component, number)
                      : wanted != component) {
      return false;
    }
    path.at[path.length++] = number;
  }
  return pattern.empty() && name.empty();
}

bool FindPath(std::string_view name, Path& path) {
  if (name.ends_with('.')) return false;
  for (std::size_t i = 0; i < kNameCount; ++i) {
    if (Match(kNames[i].pattern, name, path)) {
      path.at[0] = i;
      return true;
    }
  }
  return false;
}

std::uint64_t ValueOf(Answer answer, bool is_ours) {
  const MemoryFigures figures = ProductFigures();
  switch (answer) {
    case Answer::kVersion:
      // The version of the interface comes first: programs cut it off.
      return reinterpret_cast<std::uintptr_t>("5.3.0-hakmem");
    case Answer::kOne:
      return 1;
    case Answer::kPageBytes:
      return ProductAce().memory().PageBytes();
    case Answer::kAllocated:
      return is_ours ? figures.granted : 0;
    case Answer::kAllocatedPages:
      return is_ours ? figures.granted / ProductAce().memory().PageBytes() : 0;
    case Answer::kResident:
      return figures.granted + figures.cached + figures.metadata;
    case Answer::kMapped:
      return figures.mapped + figures.metadata;
    case Answer::kMetadata:
      return figures.metadata;
    case Answer::kNone:
    case Answer::kZero:
    case Answer::kPurge:
      break;
  }
  return 0;
}

// The numbers of errors are jemalloc's.
int Control(const Path& path, void* old_value, std::size_t* old_bytes,
            const void* new_value, std::size_t new_bytes) {
  const Name& name = kNames[path.at[0]];
  const bool reads = old_value != nullptr && old_bytes != nullptr;
  const bool writes = new_value != nullptr || new_bytes != 0;
  if ((reads && name.read_bytes == 0) || (writes && name.write_bytes == 0)) {
    return EPERM;
  }
  if (writes && (new_value == nullptr || new_bytes != name.write_bytes)) {
    return EINVAL;
  }
  if (name.answer == Answer::kPurge) ProductPurge();
  if (!reads) return 0;
  const std::uint64_t value =
      ValueOf(name.answer, path.length < 3 || path.arena() == 0 ||
                               path.arena() == kAllArenas);
  const std::size_t asked_bytes = *old_bytes;
  *old_bytes = std::min<std::size_t>(asked_bytes, name.read_bytes);
  // Of a whole number, the low bytes.
  std::memcpy(old_value, &value, *old_bytes);
  return asked_bytes == name.read_bytes ? 0 : EINVAL;
}

using WriteText = void (*)(void* context, const char* text);

struct TextWriter {
  WriteText write;
  void* context;
};

bool WriteToProgram(void* context, std::string_view lines) {
  const TextWriter& writer = *static_cast<const TextWriter*>(context);
  char text[512];
  while (!lines.empty()) {
    const std::size_t length = std::min(lines.size(), sizeof(text) - 1);
    std::memcpy(text, lines.data(), length);
    text[length] = '\0';
    writer.write(writer.context, text);
    lines.remove_prefix(length);
  }
  return true;
}

}  // namespace

extern "C" {

int mallctl(const char* name, void* old_value, std::size_t* old_bytes,
            void* new_value, std::size_t new_bytes) noexcept;
int mallctlnametomib(const char* name, std::size_t* mib,
                     std::size_t* length) noexcept;
int mallctlbymib(const std::size_t* mib, std::size_t length, void* old_value,
                 std::size_t* old_bytes, void* new_value,
                 std::size_t new_bytes) noexcept;
void malloc_stats_print(WriteText write, void* context, const char* options);

HAK_EXPORT HAK_WEAK int mallctl(const char* name, void* old_value,
                                std::size_t* old_bytes, void* new_value,
                                std::size_t new_bytes) noexcept {
  Path path;
  if (!FindPath(name, path)) return ENOENT;
  return Control(path, old_value, old_bytes, new_value, new_bytes);
}

HAK_EXPORT HAK_WEAK int mallctlnametomib(const char* name, std::size_t* mib,
                                         std::size_t* length) noexcept {
  Path path;
  if (!FindPath(name, path)) return ENOENT;
  *length = std::min(*length, path.length);
  std::copy_n(path.at, *length, mib);
  return 0;
}

HAK_EXPORT HAK_WEAK int mallctlbymib(const std::size_t* mib, std::size_t length,
                                     void* old_value, std::size_t* old_bytes,
                                     void* new_value,
                                     std::size_t new_bytes) noexcept {
  Path path = {.length = length};
  if (length == 0 || length > kMostComponents || mib[0] >= kNameCount) {
    return ENOENT;
  }
  std::copy_n(mib, length, path.at);
  return Control(path, old_value, old_bytes, new_value, new_bytes);
}

// hakmem's own statistics, whatever is asked for. The function may allocate,
// and throw.
HAK_EXPORT HAK_WEAK void malloc_stats_print(WriteText write, void* context,
                                            const char* /*options*/) {
  TextWriter writer = {.write = write, .context = context};
  // Wherever it leads: the program asks for it.
  FdSink standard_error(STDERR_FILENO);
  const LineSink sink = {.write = &WriteToProgram, .context = &writer};
  const LiveCount live = ProductLiveCount();
  PrintStatisticsText(ProductStatistics(), live.classes,
                      write != nullptr ? sink : standard_error.sink());
}

}  // extern "C"

}  // namespace hakmem
