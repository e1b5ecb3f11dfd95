#include "allocator/platform/resident_pages.h"

#include <algorithm>

namespace hakmem {

std::size_t CountResidentPages(VirtualMemory& memory, Address begin,
                               std::size_t pages, std::size_t otherwise) {
  constexpr std::size_t kAskedPages = 512;
  const std::size_t page_bytes = memory.PageBytes();
  unsigned char resident[kAskedPages];
  std::size_t found = 0;
  for (std::size_t asked = 0; asked < pages; asked += kAskedPages) {
    const std::size_t count = std::min(pages - asked, kAskedPages);
    if (!memory
             .FindResident(begin + asked * page_bytes, count * page_bytes,
                           resident)
             .ok()) {
      return otherwise;
    }
    for (std::size_t page = 0; page < count; ++page) found += resident[page];
  }
  return found;
}

}  // namespace hakmem
