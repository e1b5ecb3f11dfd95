// Has an object deleted with the size of another type, so that its block is
// handed out for that size and overlaps the next.
// attack larger: 64 bytes, deleted as 256
// expect larger: detected
// attack much_larger: 64 bytes, deleted as 5 KiB
// expect much_larger: detected
// attack large: 5 KiB, deleted as 200 KB
// expect large: detected
#include <new>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

[[noreturn]] void Confuse(std::size_t size, std::size_t claimed) {
  static char* blocks[256];
  for (char*& block : blocks) {
    block = static_cast<char*>(Opaque(operator new(size)));
  }
  std::sort(blocks, blocks + 256);
  for (int i = 0; i < 256; i += 64) {
    operator delete(Opaque(static_cast<void*>(blocks[i])), Opaque(claimed));
  }
  for (int i = 0; i < 2000; ++i) {
    const char* const block = static_cast<char*>(Opaque(operator new(claimed)));
    for (int other = 0; other < 256; ++other) {
      if (other % 64 != 0 && blocks[other] + size > block &&
          block + claimed > blocks[other]) {
        Succeeded();
      }
    }
  }
  Failed("no block overlaps another");
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "larger")) Confuse(kSmall, 256);
  if (Is(argv[1], "much_larger")) Confuse(kSmall, kMiddle);
  Confuse(kMiddle, kLarge);
}
