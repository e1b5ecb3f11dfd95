#include "tools/hakmem/resident_parts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/process_blocks.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"

namespace hakmem::tools {
namespace {

constexpr ResidentRow kRows[] = {
    {"live_block_bytes", "live blocks", &ResidentParts::live_bytes, 1},
    {"hole_bytes", "holes, free blocks", &ResidentParts::hole_bytes, 1},
    {"cached_bytes", "cached", &ResidentParts::cached_bytes, 1},
    {"untouched_bytes", "untouched, given back",
     &ResidentParts::untouched_bytes, -1},
    {"unowned_resident_bytes", "free, in memory", &ResidentParts::unowned_bytes,
     1},
    {"table_resident_bytes", "tables", &ResidentParts::table_bytes, 1},
    {"stack_resident_bytes", "stacks", &ResidentParts::stack_bytes, 1},
    {"file_resident_bytes", "files", &ResidentParts::file_bytes, 1},
    {"other_resident_bytes", "not hakmem's", &ResidentParts::other_bytes, 1},
    {"resident_bytes", "resident, the sum", &ResidentParts::resident_bytes, 0},
    {"block_resident_bytes", "of it blocks", &ResidentParts::block_bytes, 0},
    {"huge_page_bytes", "of it in huge pages", &ResidentParts::huge_page_bytes,
     0},
};

// "Rss:      12 kB"; 0: it says something else.
std::uint64_t BytesOf(std::string_view line, std::string_view key) {
  std::uint64_t kib = 0;
  if (!absl::ConsumePrefix(&line, key)) return 0;
  absl::ConsumeSuffix(&line, " kB");
  return absl::SimpleAtoi(line, &kib) ? kib * 1024 : 0;
}

// What the first line of a mapping in smaps tells.
struct Mapping {
  MemoryRange range;
  bool is_file;
  bool is_stack;
};

// "7f00-7f01 rw-p 00000000 00:00 0   [stack]"; none: it is a figure's line.
std::optional<Mapping> MappingOf(std::string_view line) {
  // The name of a figure ends with a colon, and may begin as a number does.
  const std::vector<std::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() < 5 || words[0].ends_with(':')) return std::nullopt;
  const std::vector<std::string_view> ends = absl::StrSplit(words[0], '-');
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (ends.size() != 2 || !absl::SimpleHexAtoi(ends[0], &begin) ||
      !absl::SimpleHexAtoi(ends[1], &end)) {
    return std::nullopt;
  }
  return Mapping{.range = {begin, end - begin},
                 .is_file = words[4] != "0",
                 .is_stack = words.size() > 5 && words[5] == "[stack]"};
}

// Of threads that sleep: the kernel tells of no other ones.
std::vector<std::uint64_t> StackPointers(std::uint64_t pid) {
  std::vector<std::uint64_t> pointers;
  const std::string folder = absl::StrCat("/proc/", pid, "/task");
  for (const std::uint64_t thread : NumbersIn(folder)) {
    std::ifstream file(absl::StrCat(folder, "/", thread, "/syscall"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::vector<std::string_view> words =
        absl::StrSplit(absl::StripSuffix(text, "\n"), ' ');
    std::uint64_t pointer = 0;
    // The last but one.
    if (words.size() > 2 &&
        absl::SimpleHexAtoi(words[words.size() - 2], &pointer)) {
      pointers.push_back(pointer);
    }
  }
  return pointers;
}

bool IsIn(const MemoryRange& range, std::uint64_t address) {
  return address - range.begin < range.bytes;
}

// The part that a mapping counts for.
std::uint64_t ResidentParts::* PartOf(
    const Mapping& mapping, const ProcessStatistics& process,
    const std::vector<std::uint64_t>& stack_pointers) {
  const auto window =
      std::ranges::find_if(process.windows, [&mapping](const auto& range) {
        return IsIn(range, mapping.range.begin);
      });
  if (window == process.windows.begin()) return &ResidentParts::block_bytes;
  if (window != process.windows.end()) return &ResidentParts::table_bytes;
  const auto has = [&mapping](std::uint64_t pointer) {
    return IsIn(mapping.range, pointer);
  };
  if (mapping.is_stack || std::ranges::any_of(stack_pointers, has)) {
    return &ResidentParts::stack_bytes;
  }
  return mapping.is_file ? &ResidentParts::file_bytes
                         : &ResidentParts::other_bytes;
}

// What the kernel counts.
absl::StatusOr<ResidentParts> ReadMappings(const ProcessImage& image,
                                           const ProcessStatistics& process) {
  std::ifstream file(
      absl::StrCat("/proc/", LivingThread(process.pid), "/smaps"));
  const std::vector<std::uint64_t> stack_pointers = StackPointers(process.pid);
  ResidentParts parts;
  std::uint64_t ResidentParts::* part = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (const std::optional<Mapping> mapping = MappingOf(line)) {
      part = PartOf(*mapping, process, stack_pointers);
    }
    if (part == nullptr) continue;
    const std::uint64_t bytes = BytesOf(line, "Rss:");
    parts.*part += bytes;
    parts.resident_bytes += bytes;
    if (part == &ResidentParts::block_bytes ||
        part == &ResidentParts::table_bytes) {
      parts.huge_page_bytes += BytesOf(line, "AnonHugePages:");
    }
  }
  if (part != nullptr) return parts;
  return absl::FailedPreconditionError(absl::StrCat(
      "the kernel does not tell of the pages of ", image.Who(), " (smaps)"));
}

}  // namespace

std::span<const ResidentRow> ResidentRows() { return kRows; }

absl::StatusOr<ResidentParts> CountResident(const ProcessImage& image,
                                            const ProcessStatistics& process) {
  if (image.is_core()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel counts the pages of processes that run, and ",
                     image.Who(), " is a core file"));
  }
  if (process.windows.empty()) {
    return image.UnknownForm("tells where its memory lies");
  }
  absl::StatusOr<ResidentParts> parts = ReadMappings(image, process);
  if (!parts.ok()) return parts;
  const absl::StatusOr<ProcessBlocks> blocks = CountBlocks(image);
  if (!blocks.ok()) return blocks.status();
  const std::uint64_t granted = process.statistics.granted_bytes;
  // Guarded blocks lie elsewhere. A process that changes while it is read may
  // show more live blocks than there is room for.
  parts->live_bytes =
      std::min(blocks->Total().bytes - blocks->guarded.bytes, granted);
  parts->hole_bytes = granted - parts->live_bytes;
  parts->cached_bytes = process.statistics.cached_bytes;
  const std::uint64_t taken = granted + parts->cached_bytes;
  parts->untouched_bytes = taken - std::min(taken, parts->block_bytes);
  parts->unowned_bytes =
      parts->block_bytes - std::min(taken, parts->block_bytes);
  return parts;
}

}  // namespace hakmem::tools
