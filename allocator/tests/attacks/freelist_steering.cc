// Writes a forged link to a freed block, so that a later malloc returns memory
// of the attacker's choice.
// attack plain: the address of a static variable
// expect plain: prevented
// expect[hardened debug] plain: detected
// attack mangled: the same, disguised as glibc does it with the block's address
// expect mangled: prevented
// expect[hardened debug] mangled: detected
// attack partial: one bit of the link, no address known
// expect partial: prevented
// expect[hardened debug] partial: detected
// attack remote: as `plain`, the blocks freed by another thread
// expect remote: prevented
// expect[hardened debug] remote: detected
// attack middle: as `plain`, blocks of 5 KiB
// expect middle: prevented
// expect[hardened debug] middle: detected
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

alignas(64) char g_target[2 * kMiddle];

void LookAt(const char* block, char* const* ours, int count, std::size_t size) {
  if (block >= g_target && block < g_target + sizeof g_target) Succeeded();
  for (int i = 0; i < count; ++i) {
    // In the middle of a block: two blocks overlap.
    if (block > ours[i] && block < ours[i] + size) Succeeded();
  }
}

// Until the block comes again, however long it rests.
void AllocateMuch(char* const* ours, int count, std::size_t size) {
  static char* blocks[4000];
  for (int round = 0; round < 3; ++round) {
    for (char*& block : blocks) {
      block = Allocate(size);
      LookAt(block, ours, count, size);
    }
    if (round == 2) return;
    for (char* block : blocks) Free(block);
  }
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const std::size_t size = Is(argv[1], "middle") ? kMiddle : kSmall;
  char* blocks[16];
  for (char*& block : blocks) block = Allocate(size);
  const auto free_some = [&] {
    for (int i = 4; i < 8; ++i) Free(blocks[i]);
  };
  if (Is(argv[1], "remote")) {
    InOtherThread(free_some);
  } else {
    free_some();
  }
  for (int i = 4; i < 8; ++i) {
    const Attacker attacker;
    auto link = reinterpret_cast<std::uintptr_t>(g_target);
    if (Is(argv[1], "mangled")) {
      link ^= reinterpret_cast<std::uintptr_t>(blocks[i]) >> 12;
    }
    if (Is(argv[1], "partial")) link = LoadWord(blocks[i]) ^ 0x20;
    StoreWord(blocks[i], link);
  }
  AllocateMuch(blocks, 16, size);
  Failed("malloc returns what it should");
}
