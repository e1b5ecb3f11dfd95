// Reads a block's old content after the free.
// attack small: a block of 64 bytes
// expect small: succeeds
// expect[hardened debug] small: prevented
// attack middle: of 5 KiB
// expect middle: succeeds
// expect[hardened debug] middle: prevented
// attack large: of 200 KB
// expect large: succeeds
// expect[hardened debug] large: prevented
// attack remote: freed by another thread
// expect remote: succeeds
// expect[hardened debug] remote: prevented
// attack moved: a block that realloc has moved
// expect moved: succeeds
// expect[hardened debug] moved: prevented
#include "allocator/tests/attacks/attack.h"

int main(int, char** argv) {
  using namespace hakmem;
  Begin();
  const std::size_t size = Is(argv[1], "large")    ? kLarge
                           : Is(argv[1], "middle") ? kMiddle
                                                   : kSmall;
  Blocks<16> blocks(size);
  char* const block = blocks[8];
  if (Is(argv[1], "remote")) {
    InOtherThread([&] { Free(block); });
  } else if (Is(argv[1], "moved")) {
    if (Opaque(realloc(block, 100 * size)) == block) Failed("it did not move");
  } else {
    Free(block);
  }
  const Attacker attacker;
  std::size_t length = 0;
  for (std::size_t i = 0; i < size; ++i) {
    length = Opaque(block)[i] == 'v' ? length + 1 : 0;
    if (length == 16) Succeeded();
  }
  Failed("nothing of it is left");
}
