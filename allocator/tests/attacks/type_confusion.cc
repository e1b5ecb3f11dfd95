// Has a block of another size at a freed block's address, so that an old
// pointer meets another type.
// attack within_class: 50 bytes, then 54
// expect within_class: succeeds
// attack small_to_small: 48 bytes, then 112
// expect small_to_small: succeeds
// expect[hardened debug] small_to_small: prevented
// attack small_to_middle: 64 bytes, then 5 KiB
// expect small_to_middle: prevented
// attack middle_to_middle: 5 KiB, then 9 KiB
// expect middle_to_middle: succeeds
// expect[hardened debug] middle_to_middle: prevented
// attack middle_to_large: 5 KiB, then 200 KB
// expect middle_to_large: succeeds
// expect[hardened debug] middle_to_large: prevented
// attack large_to_small: 200 KB, then 64 bytes
// expect large_to_small: prevented
// attack large_to_larger: 200 KB, then 500 KB
// expect large_to_larger: succeeds
// expect[hardened debug] large_to_larger: prevented
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

// So much that slabs, or more, of the first are free as a whole, and that what
// is kept of them is used up.
constexpr std::size_t kSmallBytes = std::size_t{8} << 20;
constexpr std::size_t kBytes = std::size_t{24} << 20;
char* g_first[kSmallBytes / 48];
char* g_then[kBytes / 48];

[[noreturn]] void Confuse(std::size_t first, std::size_t then) {
  const std::size_t first_count =
      (first < kMiddle ? kSmallBytes : kBytes) / first;
  const std::size_t then_count = kBytes / then;
  for (std::size_t i = 0; i < first_count; ++i) g_first[i] = Allocate(first);
  std::sort(g_first, g_first + first_count);
  for (std::size_t i = 0; i < first_count; ++i) Free(g_first[i]);
  for (std::size_t i = 0; i < then_count; ++i) {
    g_then[i] = Allocate(then);
    char** const above =
        std::lower_bound(g_first, g_first + first_count, g_then[i] + then);
    if (above != g_first && above[-1] + first > g_then[i]) Succeeded();
  }
  Failed("no block lies where one of the other size was");
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "within_class")) Confuse(50, 54);
  if (Is(argv[1], "small_to_small")) Confuse(48, 112);
  if (Is(argv[1], "small_to_middle")) Confuse(kSmall, kMiddle);
  if (Is(argv[1], "middle_to_middle")) Confuse(kMiddle, 9000);
  if (Is(argv[1], "middle_to_large")) Confuse(kMiddle, kLarge);
  if (Is(argv[1], "large_to_small")) Confuse(kLarge, kSmall);
  if (Is(argv[1], "large_to_larger")) Confuse(kLarge, 500000);
  abort();
}
