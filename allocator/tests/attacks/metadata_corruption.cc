// Writes over an allocator's data near blocks, and has the allocator use the
// forged data.
// attack grow_chunk: behind the end, a size for glibc's next chunk
// expect grow_chunk: prevented
// expect[hardened debug] grow_chunk: detected
// attack grow_mapping: before a block of 1 MiB, the size of glibc's mapping
// expect grow_mapping: prevented
// expect[hardened debug] grow_mapping: faults
// attack up: pointers, over all that is above blocks of 64 bytes
// expect up: prevented
// expect[hardened debug] up: detected
// attack down: pointers, over all that is below them
// expect down: prevented
// attack up_middle: pointers, over all that is above blocks of 5 KiB
// expect up_middle: prevented
// expect[hardened debug] up_middle: detected
// attack down_large: pointers, over all that is below a block of 200 KB
// expect down_large: prevented
#include <fcntl.h>
#include <sys/mman.h>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

constexpr std::uintptr_t kPageBytes = 4096;
constexpr std::uintptr_t kFar = std::uintptr_t{4} << 20;

// The chunk behind the attacker's is to be as long as two: freed, it is handed
// out for a larger size and overlaps the third.
void GrowChunk() {
  Blocks<64> blocks(24);
  for (int i = 0; i + 2 < 64; i += 4) {
    {
      const Attacker attacker;
      StoreWord(blocks[i] + 24, 0x41);
    }
    Free(blocks[i + 1]);
    char* const longer = Allocate(56);
    const char* const third = blocks[i + 2];
    if (longer < third + 24 && third < longer + 56) Succeeded();
  }
  for (int i = 0; i < 64; ++i) {
    if (i % 4 != 1) Free(blocks[i]);
  }
}

// Freeing the lower of two mappings is to unmap the one above it as well.
void GrowMapping() {
  Blocks<4> blocks(std::size_t{1} << 20);
  char* const own = blocks[1];
  {
    const Attacker attacker;
    StoreWord(own - 16, 0);
    StoreWord(own - 8, 2 * blocks.Stride() | 2);
  }
  Free(own);
  const auto inside = reinterpret_cast<std::uintptr_t>(blocks[2] + kPageBytes);
  unsigned char resident;
  if (mincore(reinterpret_cast<void*>(inside & -kPageBytes), kPageBytes,
              &resident) != 0) {
    Succeeded();
  }
  for (int i = 0; i < 4; ++i) {
    if (i != 1) Free(blocks[i]);
  }
}

alignas(kPageBytes) char g_target[kPageBytes];

// Fills the pages from here on, up or down, until one cannot be written.
void WriteFar(std::uintptr_t start, bool up) {
  const int zeros = open("/dev/zero", O_RDONLY);
  for (std::uintptr_t at = 0; at < kFar; at += kPageBytes) {
    const std::uintptr_t page =
        up ? (start + at) & -kPageBytes : ((start - at) & -kPageBytes);
    // A page that ends what is writable refuses this without a fault.
    const std::uintptr_t from = up ? std::max(page, start) : page;
    const std::uintptr_t to =
        up ? page + kPageBytes : std::min(page + kPageBytes, start);
    if (from == to) continue;
    if (read(zeros, reinterpret_cast<void*>(from), 1) != 1) break;
    for (std::uintptr_t word = (from + 7) & -8; word + 8 <= to; word += 8) {
      StoreWord(reinterpret_cast<char*>(word),
                reinterpret_cast<std::uintptr_t>(g_target));
    }
  }
  close(zeros);
}

void AllocateAndLook(std::size_t size) {
  const char* const block = Allocate(size);
  if (block >= g_target && block < g_target + sizeof g_target) Succeeded();
}

template <int kCount>
void Corrupt(std::size_t size, bool up) {
  Blocks<kCount> blocks(size);
  {
    const Attacker attacker;
    char* const own = blocks[up ? kCount - 1 : 0];
    WriteFar(reinterpret_cast<std::uintptr_t>(own), up);
  }
  for (int i = 0; i < 1000; ++i) {
    AllocateAndLook(24);
    AllocateAndLook(kSmall);
    if (i < kCount) AllocateAndLook(size);
  }
  blocks.FreeAll();
  for (int i = 0; i < 2 * kCount; ++i) AllocateAndLook(size);
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "grow_chunk")) GrowChunk();
  if (Is(argv[1], "grow_mapping")) GrowMapping();
  if (Is(argv[1], "up")) Corrupt<256>(kSmall, true);
  if (Is(argv[1], "down")) Corrupt<256>(kSmall, false);
  if (Is(argv[1], "up_middle")) Corrupt<64>(kMiddle, true);
  if (Is(argv[1], "down_large")) Corrupt<8>(kLarge, false);
  Failed("the allocator goes on as before");
}
