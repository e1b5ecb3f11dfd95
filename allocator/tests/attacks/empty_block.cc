// Uses a block of size 0, as a length that became 0 makes a program do.
// attack write: 32 bytes are written to it, and it is freed
// expect write: succeeds
// expect[hardened debug] write: faults
// attack read: 64 bytes are read from it, among others
// expect read: succeeds
// expect[hardened debug] read: faults
#include "allocator/tests/attacks/attack.h"

int main(int, char** argv) {
  using namespace hakmem;
  Begin();
  // Others of the smallest class, on both sides of the empty one.
  char* others[2][64];
  for (char*& other : others[0]) Fill(other = Allocate(8), 'v', 8);
  char* const empty = Allocate(0);
  for (char*& other : others[1]) Fill(other = Allocate(8), 'v', 8);
  {
    const Attacker attacker;
    if (Is(argv[1], "read")) {
      for (int at = 0; at < 64; at += 8) {
        if (IsFilled(empty + at, 'v', 8)) Succeeded();
      }
      Failed("nothing of others was read");
    }
    Fill(empty, 'A', 32);
  }
  Free(empty);
  for (const auto& side : others) {
    for (const char* other : side) {
      if (!IsFilled(other, 'v', 8)) Succeeded();
    }
  }
  for (const auto& side : others) {
    for (char* other : side) Free(other);
  }
  Failed("no other block changed");
}
