// Gets the block that a victim has freed and still uses. Each try has a victim
// of its own, among others of its size.
// attack at_once: by the next malloc of the size
// expect at_once: succeeds
// expect[hardened debug] at_once: prevented
// attack in_ten: by one of the next 10
// expect in_ten: succeeds
// expect[hardened debug] in_ten: prevented
// attack in_hundred: by one of the next 100
// expect in_hundred: succeeds
// expect[hardened debug] in_hundred: prevented
// attack churn: by 100 rounds of 100 mallocs, all freed again
// expect churn: succeeds
// attack remote: by one of the next 10, freed by another thread
// expect remote: prevented
// expect[hardened debug] remote: 0..1 %
// attack middle: by the next malloc, of 5 KiB
// expect middle: succeeds
// expect[hardened debug] middle: prevented
// attack large: by the next malloc, of 200 KB
// expect large: succeeds
// expect[hardened debug] large: prevented
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

bool Gets(const char* victim, std::size_t size, int count) {
  static char* blocks[100];
  bool found = false;
  for (int i = 0; i < count; ++i) {
    blocks[i] = Allocate(size);
    found |= blocks[i] == victim;
  }
  for (int i = 0; i < count; ++i) Free(blocks[i]);
  return found;
}

bool Try(const char* how, std::size_t size) {
  char* const victim = Allocate(size);
  if (Is(how, "remote")) {
    InOtherThread([&] { Free(victim); });
  } else {
    Free(victim);
  }
  if (Is(how, "in_ten") || Is(how, "remote")) return Gets(victim, size, 10);
  if (Is(how, "in_hundred")) return Gets(victim, size, 100);
  if (!Is(how, "churn")) return Gets(victim, size, 1);
  for (int round = 0; round < 100; ++round) {
    if (Gets(victim, size, 100)) return true;
  }
  return false;
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const std::size_t size = Is(argv[1], "large")    ? kLarge
                           : Is(argv[1], "middle") ? kMiddle
                                                   : kSmall;
  static char* others[300];
  const int count = size == kLarge ? 30 : 300;
  for (int i = 0; i < count; ++i) others[i] = Allocate(size);
  const int tries = 300;
  int successes = 0;
  for (int i = 0; i < tries; ++i) {
    if (Try(argv[1], size)) ++successes;
  }
  SucceededIn(successes, tries);
}
