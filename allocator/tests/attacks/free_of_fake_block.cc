// Frees an address where the attacker has built a block with glibc's header, so
// that malloc returns the address.
// attack on_stack: on the stack
// expect on_stack: detected
// attack is_static: in a static variable
// expect is_static: detected
// attack inside: inside a live block
// expect inside: detected
// attack inside_middle: inside a live block of 5 KiB
// expect inside_middle: detected
// attack mapped: in the program's own mapping, aligned to 64 MiB
// expect mapped: detected
// attack fake_slab: in a copy of the 64 MiB that a live block lies in
// expect fake_slab: detected
#include <sys/mman.h>
#include <sys/uio.h>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

alignas(64) char g_static[4096];

// A chunk for malloc(64), and the size of one behind it.
char* Build(char* at) {
  StoreWord(at + 8, 0x51);
  StoreWord(at + 8 + 0x50, 0x51);
  return at + 16;
}

[[noreturn]] void FreeFake(char* fake, std::size_t size) {
  Free(fake);
  for (int i = 0; i < 8000; ++i) {
    char* const block = Allocate(size);
    if (block < fake + size && fake < block + size) Succeeded();
  }
  Failed("malloc did not return it");
}

constexpr std::size_t kAligned = std::size_t{64} << 20;

char* Map() {
  void* const memory = mmap(nullptr, 2 * kAligned, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  return reinterpret_cast<char*>((start + kAligned - 1) & -kAligned);
}

// The block's counterpart in a copy of all that can be read around it, what an
// allocator keeps at round addresses included.
char* CopySlab(char* block) {
  constexpr std::size_t kPageBytes = 4096;
  const auto at = reinterpret_cast<std::uintptr_t>(block) % kAligned;
  char* const copy = Map();
  for (std::size_t page = 0; page < kAligned; page += kPageBytes) {
    const iovec to = {copy + page, kPageBytes};
    const iovec from = {block - at + page, kPageBytes};
    process_vm_readv(getpid(), &to, 1, &from, 1, 0);
  }
  return copy + at;
}

}  // namespace

int main(int, char** argv) {
  Begin();
  Blocks<64> blocks(kSmall);
  if (Is(argv[1], "on_stack")) {
    alignas(64) char local[4096] = {};
    FreeFake(Build(local), kSmall);
  }
  if (Is(argv[1], "is_static")) FreeFake(Build(g_static), kSmall);
  if (Is(argv[1], "fake_slab")) FreeFake(CopySlab(blocks[32]), kSmall);
  if (Is(argv[1], "mapped")) FreeFake(Build(Map() + 65536), kSmall);
  const std::size_t size = Is(argv[1], "inside_middle") ? kMiddle : 128;
  FreeFake(Build(Allocate(size) + 16), size == kMiddle ? kMiddle : kSmall);
}
