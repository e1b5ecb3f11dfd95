// Accesses memory 1 MiB behind a block's end, by an index far out of bounds:
// addresses that the allocator has given to nobody.
// attack read_small: reads 1 MiB behind 64 bytes
// expect read_small: succeeds
// expect[hardened debug] read_small: faults
// attack write_small: writes there
// expect write_small: succeeds
// expect[hardened debug] write_small: faults
// attack read_middle: reads 1 MiB behind 5 KiB
// expect read_middle: succeeds
// expect[hardened debug] read_middle: faults
// attack write_middle: writes there
// expect write_middle: succeeds
// expect[hardened debug] write_middle: faults
// attack read_large: reads 1 MiB behind 200 KB
// expect read_large: succeeds
// expect[hardened debug] read_large: faults
// attack write_large: writes there
// expect write_large: succeeds
// expect[hardened debug] write_large: faults
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

void Use(std::size_t size, bool writes) {
  constexpr std::size_t kDistanceBytes = std::size_t{1} << 20;
  char* const far = Allocate(size) + size + kDistanceBytes;
  {
    const Attacker attacker;
    if (writes) {
      Fill(far, 'A', 16);
    } else {
      (void)IsFilled(far, 'A', 16);
    }
  }
  Succeeded();
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const bool writes = strncmp(argv[1], "write", 5) == 0;
  if (strstr(argv[1], "small") != nullptr) Use(kSmall, writes);
  if (strstr(argv[1], "middle") != nullptr) Use(kMiddle, writes);
  if (strstr(argv[1], "large") != nullptr) Use(kLarge, writes);
  Failed("no such case");
}
