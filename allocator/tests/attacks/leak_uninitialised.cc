// Finds another owner's data in new memory, before the first write.
// attack small: 64 bytes
// expect small: succeeds
// expect[hardened debug] small: prevented
// attack middle: 5 KiB
// expect middle: succeeds
// expect[hardened debug] middle: prevented
// attack large: 200 KB
// expect large: succeeds
// expect[hardened debug] large: prevented
// attack other_size: 200 KB, found in 5 KiB
// expect other_size: succeeds
// expect[hardened debug] other_size: prevented
// attack remote: 64 bytes, freed by another thread
// expect remote: succeeds
// expect[hardened debug] remote: prevented
// attack moved: what realloc has left behind
// expect moved: succeeds
// expect[hardened debug] moved: prevented
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

void LookAt(const char* block, std::size_t size) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < size; ++i) {
    length = Opaque(block)[i] == 'v' ? length + 1 : 0;
    if (length == 16) Succeeded();
  }
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const std::size_t size = Is(argv[1], "middle") ? kMiddle
                           : Is(argv[1], "large") || Is(argv[1], "other_size")
                               ? kLarge
                               : kSmall;
  Blocks<64> secrets(size);
  if (Is(argv[1], "remote")) {
    InOtherThread([&] { secrets.FreeAll(); });
  } else if (Is(argv[1], "moved")) {
    for (int i = 0; i < 64; ++i) {
      secrets[i] = static_cast<char*>(Opaque(realloc(secrets[i], 4 * size)));
    }
  } else {
    secrets.FreeAll();
  }
  const std::size_t later = Is(argv[1], "other_size") ? kMiddle : size;
  static char* blocks[500];
  const int count = size == kLarge && later == kLarge ? 64 : 500;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] = Allocate(later);
      LookAt(blocks[i], later);
    }
    for (int i = 0; i < count; ++i) Free(blocks[i]);
  }
  Failed("nothing was found");
}
