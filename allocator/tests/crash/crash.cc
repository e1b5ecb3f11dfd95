// Crashes in the way that its argument names; run_crash.py knows what has to be
// said of it. Built without frame pointers, as most programs are.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allocator/tests/opaque.h"

namespace {

using hakmem::Opaque;

char* Allocate(std::size_t bytes) {
  return static_cast<char*>(Opaque(malloc(bytes)));
}

// Takes the page away that the byte is in.
void Protect(char* byte) {
  const auto address = reinterpret_cast<std::uintptr_t>(byte);
  mprotect(reinterpret_cast<void*>(address & ~std::uintptr_t{4095}), 4096,
           PROT_NONE);
}

void OwnHandler(int) {
  constexpr char kText[] = "own handler\n";
  (void)!write(2, kText, sizeof(kText) - 1);
  _exit(7);
}

// Runs before the constructors of any library.
void InstallEarly(int argc, char** argv, char**) {
  if (argc == 2 && strcmp(argv[1], "handler_before") == 0) {
    signal(SIGSEGV, &OwnHandler);
  }
}
__attribute__((section(".preinit_array"),
               used)) void (*g_early)(int, char**, char**) = &InstallEarly;

int Deep(int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : Deep(Opaque(depth) + 1) + frame[0];
}

}  // namespace

extern "C" __attribute__((noinline)) void hakmem_test_store(char* to) {
  *static_cast<volatile char*>(to) = 1;
  __asm__ volatile("" ::: "memory");
}

namespace {

struct Case {
  const char* name;
  void (*crash)();
};

constexpr std::size_t kHuge = std::size_t{300} << 20;

const Case kCases[] = {
    {"null", [] { hakmem_test_store(Opaque(reinterpret_cast<char*>(8))); }},
    {"wild",
     [] { hakmem_test_store(Opaque(reinterpret_cast<char*>(0x123456))); }},
    {"non_canonical",
     [] {
       hakmem_test_store(Opaque(reinterpret_cast<char*>(0xdead000000000000)));
     }},
    {"live_span",
     [] {
       char* const block = Allocate(200000);
       Protect(block + 8192);
       hakmem_test_store(block + 8200);
     }},
    {"live_tiny",
     [] {
       // A page of blocks, in the middle of a slab.
       char* block = Allocate(64);
       while (reinterpret_cast<std::uintptr_t>(block) % 4096 != 1024) {
         block = Allocate(64);
       }
       Protect(block);
       hakmem_test_store(block + 3);
     }},
    // Where nothing was granted some variants let nobody; others are told to.
    {"far_behind",
     [] {
       char* const far = Allocate(200000) + (1 << 20);
       hakmem_test_store(far);
       Protect(far);
       hakmem_test_store(far);
     }},
    {"past_huge", [] { hakmem_test_store(Allocate(kHuge) + kHuge + 8192); }},
    {"freed_huge",
     [] {
       char* const block = Allocate(kHuge);
       free(block);
       hakmem_test_store(block + (100 << 20) + 5);
     }},
    {"bus",
     [] {
       char name[] = "/tmp/hakmem_crash_XXXXXX";
       const int fd = mkstemp(name);
       unlink(name);
       void* const page =
           mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
       hakmem_test_store(static_cast<char*>(page));
     }},
    {"abort", [] { abort(); }},
    {"sent", [] { kill(getpid(), SIGSEGV); }},
    {"deep", [] { Deep(1); }},
    {"deep_thread", [] { std::thread([] { Deep(1); }).join(); }},
    {"other_thread",
     [] {
       std::thread([] {
         hakmem_test_store(Opaque(reinterpret_cast<char*>(8)));
       }).join();
     }},
    // Only what is meant for handlers may be written.
    {"small_stack",
     [] {
       alignas(4096) static char pages[3 * 4096];
       Protect(pages);
       const stack_t handlers = {
           .ss_sp = pages + 4096, .ss_flags = 0, .ss_size = 8192};
       sigaltstack(&handlers, nullptr);
       hakmem_test_store(Opaque(reinterpret_cast<char*>(8)));
     }},
    {"handler_before",
     [] { hakmem_test_store(Opaque(reinterpret_cast<char*>(8))); }},
    {"handler_after",
     [] {
       signal(SIGSEGV, &OwnHandler);
       hakmem_test_store(Opaque(reinterpret_cast<char*>(8)));
     }},
    {"ignored",
     [] {
       signal(SIGSEGV, SIG_IGN);
       kill(getpid(), SIGSEGV);
       OwnHandler(0);
     }},
    {"double_free",
     [] {
       char* const block = Allocate(64);
       free(block);
       free(Opaque(block));
     }},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    if (argc == 2 && strcmp(argv[1], one.name) == 0) one.crash();
  }
  return 1;
}
