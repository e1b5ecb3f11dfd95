#include "allocator/failures/limit_report.h"

#include <cstddef>
#include <cstring>

namespace hakmem {

int LimitReport::Add(const char* name, const char* source, std::uint64_t value,
                     std::uint64_t use) {
  if (count == kMaxReadings) return -1;
  LimitReading& reading = readings[count];
  reading.name = name;
  reading.value = value;
  reading.use = use;
  constexpr std::size_t kRoom = sizeof(reading.source) - 1;
  constexpr char kCut[] = "...";
  const std::size_t length = std::strlen(source);
  if (length <= kRoom) {
    std::memcpy(reading.source, source, length + 1);
  } else {
    // The end tells more: the file and the innermost group.
    constexpr std::size_t kKept = kRoom - (sizeof(kCut) - 1);
    std::memcpy(reading.source, kCut, sizeof(kCut) - 1);
    std::memcpy(reading.source + sizeof(kCut) - 1, source + length - kKept,
                kKept + 1);
  }
  return static_cast<int>(count++);
}

}  // namespace hakmem
