// A program with a cache of memory that is registered with a device, as UCX and
// Open MPI keep one: what it wrote into libc's functions tells it which memory
// goes. Of what it has not heard, the cache believes that it is still there.
// WORK is
//   events   each range that is unmapped, given back, or has other pages put in
//            its place is told of before it is used again
//   mremap   as UCX before 1.15: of mremap's five arguments four are passed on
// Ends with "done" on standard output.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <initializer_list>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

constexpr size_t kMiB = size_t{1} << 20;
// Of so many pages each block of the test has less.
constexpr size_t kMaxPages = 16'384;

struct Registered {
  uintptr_t begin;
  size_t pages;
  bool gone[kMaxPages];
};
Registered g_registered;
size_t g_page_bytes = 4096;

void Check(bool good, const char* what) {
  if (good) return;
  printf("failed: %s\n", what);
  fflush(stdout);
  _exit(1);
}

void Register(void* block, size_t bytes) {
  g_registered.begin = reinterpret_cast<uintptr_t>(block) & ~(g_page_bytes - 1);
  g_registered.pages = bytes / g_page_bytes;
  Check(g_registered.pages < kMaxPages, "a block of the test is too long");
  memset(g_registered.gone, 0, sizeof(g_registered.gone));
}

// Called within malloc and free.
void Hear(const void* begin, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (size_t i = 0; i < g_registered.pages; ++i) {
    const uintptr_t page = g_registered.begin + i * g_page_bytes;
    if (page + g_page_bytes > first && page < first + bytes) {
      g_registered.gone[i] = true;
    }
  }
}

size_t CountGone() {
  size_t gone = 0;
  for (size_t i = 0; i < g_registered.pages; ++i) gone += g_registered.gone[i];
  return gone;
}

int Unmap(void* begin, size_t bytes) {
  Hear(begin, bytes);
  return static_cast<int>(syscall(SYS_munmap, begin, bytes));
}

int Advise(void* begin, size_t bytes, int advice) {
  if (advice == MADV_DONTNEED) Hear(begin, bytes);
  return static_cast<int>(syscall(SYS_madvise, begin, bytes, advice));
}

// No address: what the fifth register happens to hold. The lowest one that a
// process may map, so that nothing is in the way.
void* MoveWithFour(void* from, size_t old_bytes, size_t bytes, int flags) {
  constexpr uintptr_t kAnything = 0x10'000'000;
  Hear(from, old_bytes);
  return reinterpret_cast<void*>(
      syscall(SYS_mremap, from, old_bytes, bytes, flags, kAnything));
}

void* MoveWithFive(void* from, size_t old_bytes, size_t bytes, int flags,
                   void* to) {
  Hear(from, old_bytes);
  return reinterpret_cast<void*>(
      syscall(SYS_mremap, from, old_bytes, bytes, flags, to));
}

// Writes a jump to `to` over the first instructions of libc's function.
void Rewrite(const char* name, void* to) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  auto* const code = static_cast<unsigned char*>(
      libc == nullptr ? nullptr : dlsym(libc, name));
  Check(code != nullptr, "no libc");
  utsname machine = {};
  uname(&machine);
  const bool is_x86 = strcmp(machine.machine, "x86_64") == 0;
  // movabs $to, %r11; jmp *%r11
  unsigned char x86_jump[16] = {0x49, 0xbb};
  x86_jump[10] = 0x41;
  x86_jump[11] = 0xff;
  x86_jump[12] = 0xe3;
  memcpy(x86_jump + 2, &to, sizeof(to));
  // ldr x17, .+8; br x17
  unsigned char arm_jump[16] = {0x51, 0, 0, 0x58, 0x20, 0x02, 0x1f, 0xd6};
  memcpy(arm_jump + 8, &to, sizeof(to));
  const unsigned char* const jump = is_x86 ? x86_jump : arm_jump;
  const size_t jump_bytes = is_x86 ? 13 : 16;
  auto* const page = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(code) &
                                             ~(g_page_bytes - 1));
  Check(syscall(SYS_mprotect, page, 2 * g_page_bytes,
                PROT_READ | PROT_WRITE | PROT_EXEC) == 0,
        "code cannot be written here");
  memcpy(code, jump, jump_bytes);
  __builtin___clear_cache(reinterpret_cast<char*>(code),
                          reinterpret_cast<char*>(code) + jump_bytes);
}

char* Allocate(size_t bytes, char value) {
  auto* const block = static_cast<char*>(Opaque(malloc(bytes)));
  Check(block != nullptr, "malloc");
  memset(block, value, bytes);
  return block;
}

bool Holds(const char* block, size_t bytes, char value) {
  for (size_t i = 0; i < bytes; i += 512) {
    if (block[i] != value) return false;
  }
  return true;
}

// Realloc where pages are moved rather than copied.
void Grow() {
  for (const size_t bytes : {5 * kMiB, 20 * kMiB, 60 * kMiB}) {
    char* block = Allocate(bytes, 'a');
    // Whatever lies behind it is in the way.
    void* const behind = Allocate(bytes, 'b');
    block = static_cast<char*>(Opaque(realloc(block, 3 * bytes)));
    Check(block != nullptr && Holds(block, bytes, 'a'), "realloc lost data");
    memset(block + bytes, 'c', 2 * bytes);
    Check(Holds(block, bytes, 'a'), "realloc gave shared memory");
    free(Opaque(block));
    free(behind);
  }
}

void ExpectAllGone(const char* what) {
  Check(CountGone() == g_registered.pages, what);
  g_registered.pages = 0;
}

void Events() {
  // Given back, or unmapped.
  char* block = Allocate(40 * kMiB, 'a');
  Register(block, 40 * kMiB);
  free(Opaque(block));
  malloc_trim(0);
  ExpectAllGone("what malloc_trim gave back");

  block = Allocate(300 * kMiB, 'a');
  Register(block, 50 * kMiB);
  free(Opaque(block));
  ExpectAllGone("what free unmapped");

  // The source of a move.
  block = Allocate(20 * kMiB, 'a');
  void* behind = Allocate(20 * kMiB, 'b');
  Register(block, 20 * kMiB);
  auto* moved = static_cast<char*>(Opaque(realloc(block, 50 * kMiB)));
  if (moved != block) ExpectAllGone("what realloc moved away");
  free(moved);
  free(behind);

  // The target: memory that was registered and freed, and is kept.
  malloc_trim(0);
  block = Allocate(60 * kMiB, 'a');
  Register(block, 60 * kMiB);
  auto* const small = Allocate(20 * kMiB, 'b');
  behind = Allocate(kMiB, 'c');
  free(Opaque(block));
  moved = static_cast<char*>(Opaque(realloc(small, 50 * kMiB)));
  const uintptr_t at = reinterpret_cast<uintptr_t>(moved);
  for (size_t i = 0; i < g_registered.pages; ++i) {
    const uintptr_t page = g_registered.begin + i * g_page_bytes;
    if (page >= at && page < at + 20 * kMiB) {
      Check(g_registered.gone[i], "what realloc moved to");
    }
  }
  g_registered.pages = 0;
  free(moved);
  free(behind);
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 2, "WORK");
  g_page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const bool old = strcmp(argv[1], "mremap") == 0;
  Rewrite("munmap", reinterpret_cast<void*>(&Unmap));
  Rewrite("madvise", reinterpret_cast<void*>(&Advise));
  Rewrite("mremap", old ? reinterpret_cast<void*>(&MoveWithFour)
                        : reinterpret_cast<void*>(&MoveWithFive));
  Grow();
  if (!old) Events();
  puts("done");
  return 0;
}
