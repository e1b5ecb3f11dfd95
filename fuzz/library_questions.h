// What a program asks the library about itself: calls that hand out no block.
//
// Owns: nothing. Called by: symbols_fuzz. Thread-safety: none. A wrong answer
// ends the process.
#ifndef HAKMEM_FUZZ_LIBRARY_QUESTIONS_H_
#define HAKMEM_FUZZ_LIBRARY_QUESTIONS_H_

#include <fcntl.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "allocator/base/check.h"
#include "allocator/hakmem.h"
#include "fuzz/library_calls.h"
#include "fuzz/records.h"

namespace hakmem {

// The number of the newest event of a failed call.
inline std::uint64_t LastEvent() {
  hakmem_failure_event event;
  return hakmem_failure_events(&event, 1, sizeof(event)) == 0 ? 0
                                                              : event.sequence;
}

// Whether memcpy and its relatives are the library's.
inline bool ChecksCopies() {
  return std::strcmp(hakmem_variant(), "hardened") == 0 ||
         std::strcmp(hakmem_variant(), "debug") == 0;
}

// Whether blocks may be guarded ones.
inline bool GuardsBlocks() {
  static const bool guards = std::getenv("HAKMEM_GUARD_SAMPLE") != nullptr;
  return guards;
}

// By one of the functions that free blocks of C's.
inline void FreeOfC(void* block, std::size_t size, std::size_t alignment,
                    std::size_t rounded, unsigned how) {
  switch (how % 6) {
    case 0:
      alignment == kMinAlignmentBytes
          ? free_sized(block, size)
          : free_aligned_sized(block, alignment, size);
      break;
    case 1:
      sdallocx(block, rounded, std::countr_zero(alignment));
      break;
    case 2:
      dallocx(block, 0);
      break;
    case 3:
      cfree(block);
      break;
    default:
      free(block);
      break;
  }
}

// A structure that the caller says is so long has nothing written behind it.
template <typename Call>
void CheckLength(std::size_t bytes, Call call) {
  constexpr unsigned char kMark = 0xa5;
  static unsigned char room[4096];
  std::memset(room, kMark, sizeof(room));
  call(room);
  HAK_CHECK(std::all_of(room + bytes, std::end(room),
                        [](unsigned char byte) { return byte == kMark; }));
}

// What is as long as the caller says.
inline void AskForStructures(const Record& record) {
  if (record.a / 16 % 2 == 0) {
    const std::size_t bytes = record.b % 2048;
    CheckLength(bytes, [&](unsigned char* room) {
      (void)hakmem_get_statistics(reinterpret_cast<hakmem_statistics*>(room),
                                  bytes);
    });
    return;
  }
  const std::size_t bytes = record.b % 1024;
  const std::size_t count = record.b / 1024 % 4;
  CheckLength(count * bytes, [&](unsigned char* room) {
    HAK_CHECK_LE(
        hakmem_failure_events(reinterpret_cast<hakmem_failure_event*>(room),
                              count, bytes),
        count);
  });
}

inline void AskAboutMemory(const Record& record, std::size_t live_bytes) {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  static std::FILE* const stream = std::fopen("/dev/null", "w");
  switch (record.a % 16) {
    case 0:
    case 1: {
      const struct mallinfo2 info = mallinfo2();
      HAK_CHECK_GE(info.uordblks + info.hblkhd, live_bytes);
      break;
    }
    case 2:
      HAK_CHECK_EQ(malloc_info(0, stream), 0);
      break;
    case 3:
      (void)mallopt(static_cast<int>(record.b % 32) - 16, 1);
      break;
    case 4:
      (void)malloc_trim(record.b);
      break;
    case 5:
      (void)hakmem_purge();
      break;
    case 6:
      HAK_CHECK_LE(hakmem_prewarm(SizeOf(record.b) % (kMaxPoolBytes + 2), 32),
                   32U);
      break;
    case 7:
      HAK_CHECK_EQ(hakmem_check_heap(), 0U);
      break;
    case 8:
    case 9:
      AskForStructures(record);
      break;
    case 10:
      HAK_CHECK_EQ(hakmem_write_openmetrics(nowhere), 0);
      break;
    case 11:
      HAK_CHECK_EQ(hakmem_heap_profile(nowhere), 0);
      break;
    case 12:
      malloc_stats_print(
          [](void*, const char* text) {
            HAK_CHECK_LE(std::strlen(text), 511U);
          },
          nullptr, nullptr);
      break;
    default:
      HAK_CHECK_EQ(malloc_info(1, stream) != 0, true);
      break;
  }
}

inline void AskMallctl(const Record& record) {
  constexpr const char* kNames[] = {
      "version",
      "epoch",
      "arena.0.purge",
      "arena.4096.purge",
      "arenas.create",
      "stats.resident",
      "tcache.create",
      "tcache.destroy",
      "stats.arenas.0.pactive",
      "stats.arenas.7.large.allocated",
      "thread..",
      "arena.x.purge",
      "",
  };
  std::size_t path[6] = {};
  std::size_t length = record.b % 6;
  const char* const name = kNames[record.a % std::size(kNames)];
  std::size_t old_bytes = record.b / 8 % 16;
  const std::size_t asked_bytes = old_bytes;
  std::uint64_t new_value = record.b;
  const std::size_t new_bytes =
      record.b / 128 % 4 == 0 ? record.b / 512 % 9 : 0;
  void* const value = new_bytes != 0 ? &new_value : nullptr;
  CheckLength(asked_bytes, [&](unsigned char* room) {
    if (record.who % 2 == 0) {
      (void)mallctl(name, room, &old_bytes, value, new_bytes);
    } else if (mallctlnametomib(name, path, &length) == 0) {
      // Any arena, or what is not one of the names.
      path[record.b / 64 % 2] += record.b / 4096 % 3;
      (void)mallctlbymib(path, length, room, &old_bytes, value, new_bytes);
    }
  });
  HAK_CHECK_LE(old_bytes, asked_bytes);
}

// One that allocates, and asks for a few tries more.
inline void SetHandler(const Record& record) {
  static unsigned tries = 0;
  tries = record.a % 4;
  const auto handler = [](const hakmem_failure_event* event, void*) -> int {
    HAK_CHECK_NE(event->detail[0], '\0');
    free(malloc(100));
    return tries-- % 4 != 0 ? 1 : 0;
  };
  hakmem_set_failure_handler(record.b % 2 == 0 ? handler : nullptr, nullptr);
}

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_LIBRARY_QUESTIONS_H_
