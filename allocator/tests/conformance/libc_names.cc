// A program that has a malloc of its own, and a free: they count, and call
// glibc's by its other names. What it leaves alone meets the same blocks.

#include <malloc.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "allocator/tests/opaque.h"

// Glibc declares these nowhere.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(std::size_t size);
void __libc_free(void* block);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* __libc_valloc(std::size_t size);
void* __libc_pvalloc(std::size_t size);
// NOLINTEND(bugprone-reserved-identifier)
}

namespace {
// One thread.
unsigned g_allocated = 0;
unsigned g_freed = 0;
}  // namespace

extern "C" void* malloc(std::size_t size) {
  ++g_allocated;
  return __libc_malloc(size);
}

extern "C" void free(void* block) {
  ++g_freed;
  __libc_free(block);
}

int main() {
  using hakmem::Opaque;
  void* const blocks[] = {
      Opaque(malloc(100)),
      Opaque(calloc(10, 10)),
      Opaque(realloc(malloc(10), 100)),
      Opaque(aligned_alloc(64, 100)),
      Opaque(strdup("a text that takes a block of a hundred bytes, "
                    "and that libc itself asks malloc for: so long "
                    "it is")),
      Opaque(__libc_malloc(100)),
      Opaque(__libc_calloc(10, 10)),
      Opaque(__libc_realloc(malloc(10), 100)),
      Opaque(__libc_memalign(64, 100)),
      Opaque(__libc_valloc(100)),
      Opaque(__libc_pvalloc(100))};
  for (void* block : blocks) {
    if (malloc_usable_size(block) < 90) return 1;
    free(block);
  }
  delete Opaque(new int);
  if (g_allocated < 4 || g_freed < std::size(blocks)) {
    fputs("malloc and free are not the program's; this tests nothing\n",
          stderr);
    return 2;
  }
  return 0;
}
