// The entry points that ask hakmem about itself: hakmem.h, glibc's mallinfo
// family and malloc_trim, malloc_stats, malloc_info, mallopt.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/base/raw_print.h"
#include "allocator/config/version.h"
#include "allocator/core/live_count.h"
#include "allocator/frontend/current_product.h"
#include "allocator/hakmem.h"
#include "allocator/platform/glibc_malloc.h"
#include "allocator/platform/proc_reader.h"
#include "allocator/process/process.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {
namespace {

// glibc's words for what hakmem counts: its "arena" is what is mapped for slabs
// and spans, its "mmapped" blocks are Huge ones, a free block of a slab is a
// free chunk.
template <typename Info>
Info ToMallinfo() {
  using Field = decltype(Info::arena);
  const auto clamp = [](std::uint64_t value) {
    constexpr auto kMax =
        static_cast<std::uint64_t>(std::numeric_limits<Field>::max());
    return static_cast<Field>(std::min(value, kMax));
  };
  const Statistics statistics = ProductStatistics();
  const LiveCount live = ProductLiveCount();
  // The two are read one after the other, while other threads allocate. Guarded
  // blocks lie outside what is mapped for others.
  const std::uint64_t arena =
      statistics.mapped_bytes -
      std::min(live.huge_bytes, statistics.mapped_bytes) + live.guarded_bytes;
  const std::uint64_t in_use = std::min(live.bytes - live.huge_bytes, arena);
  Info info = {};
  info.arena = clamp(arena);
  info.ordblks = clamp(live.free_blocks);
  info.hblks = clamp(live.huge_blocks);
  info.hblkhd = clamp(live.huge_bytes);
  info.uordblks = clamp(in_use);
  info.fordblks = clamp(arena - in_use);
  info.keepcost = clamp(statistics.cached_bytes);
  return info;
}

struct StreamWriter {
  std::FILE* stream;
  bool failed = false;
};

bool WriteToStream(void* context, std::string_view lines) {
  StreamWriter& writer = *static_cast<StreamWriter*>(context);
  if (std::fwrite(lines.data(), 1, lines.size(), writer.stream) !=
      lines.size()) {
    writer.failed = true;
  }
  return !writer.failed;
}

// What a reader from outside sees of the process.
struct ProcessSeen {
  char program[64] = {};
  std::uint64_t resident_bytes = 0;
};

ProcessSeen LookAtProcess() {
  ProcessSeen seen;
  const ProcReader files;
  std::string_view line;
  LineReader name(files, "/proc/self/comm");
  if (name.Next(line)) {
    std::memcpy(seen.program, line.data(),
                std::min(line.size(), sizeof(seen.program) - 1));
  } else {
    std::strncpy(seen.program, ProgramName(), sizeof(seen.program) - 1);
  }
  LineReader pages(files, "/proc/thread-self/statm");
  std::uint64_t resident = 0;
  if (pages.Next(line)) {
    TakeWord(line);
    if (ParseDecimal(TakeWord(line), resident)) {
      seen.resident_bytes = resident * ProductAce().memory().PageBytes();
    }
  }
  return seen;
}

}  // namespace
}  // namespace hakmem

extern "C" {

HAK_EXPORT const char* hakmem_version() { return hakmem::kVersion; }

HAK_EXPORT const char* hakmem_variant() { return hakmem::ProductVariant(); }

HAK_EXPORT std::size_t hakmem_get_statistics(hakmem_statistics* statistics,
                                             std::size_t size_bytes) {
  const hakmem_statistics known = hakmem::ProductStatistics();
  std::memset(statistics, 0, size_bytes);
  std::memcpy(statistics, &known, std::min(size_bytes, sizeof(known)));
  return sizeof(known);
}

HAK_EXPORT int hakmem_write_openmetrics(int fd) {
  const hakmem::ProcessSeen seen = hakmem::LookAtProcess();
  hakmem::FdSink writer(fd);
  hakmem::PrintStatisticsOpenMetrics(
      hakmem::ProductStatistics(),
      {.id = static_cast<std::uint64_t>(hakmem::ProcessId()),
       .program = seen.program,
       .resident_bytes = seen.resident_bytes},
      writer.sink());
  if (writer.error_number == 0) return 0;
  errno = writer.error_number;
  return -1;
}

HAK_EXPORT std::size_t hakmem_purge() { return hakmem::ProductPurge(); }

HAK_EXPORT std::size_t hakmem_check_heap() {
  return hakmem::ProductCheckHeap();
}

HAK_EXPORT std::size_t hakmem_prewarm(std::size_t size, std::size_t count) {
  return hakmem::ProductPrewarm(size, count);
}

HAK_EXPORT struct mallinfo mallinfo() noexcept {
  return hakmem::ToMallinfo<struct mallinfo>();
}

HAK_EXPORT struct mallinfo2 mallinfo2() noexcept {
  return hakmem::ToMallinfo<struct mallinfo2>();
}

// There is no top of a heap to pad: everything that is kept is given back.
HAK_EXPORT int malloc_trim(std::size_t /*pad*/) noexcept {
  return hakmem::ProductPurge() != 0 ? 1 : 0;
}

// glibc's parameters are accepted, so that programs which insist on success go
// on, and have no effect: hakmem's own are environment options.
HAK_EXPORT int mallopt(int parameter, int /*value*/) noexcept {
  switch (parameter) {
    case M_MXFAST:
    case M_NLBLKS:
    case M_GRAIN:
    case M_KEEP:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

// To standard error wherever it leads, as libc does.
HAK_EXPORT void malloc_stats() noexcept {
  const hakmem::LiveCount live = hakmem::ProductLiveCount();
  hakmem::PrintStatisticsText(hakmem::ProductStatistics(), live.classes,
                              hakmem::FdSink(STDERR_FILENO).sink());
}

HAK_EXPORT int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) return EINVAL;
  const hakmem::LiveCount live = hakmem::ProductLiveCount();
  hakmem::StreamWriter writer = {.stream = stream};
  hakmem::PrintStatisticsXml(
      hakmem::ProductStatistics(), live.classes,
      {.write = &hakmem::WriteToStream, .context = &writer});
  return writer.failed ? EIO : 0;
}

}  // extern "C"
