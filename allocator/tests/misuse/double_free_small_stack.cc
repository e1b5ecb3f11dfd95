// A double free in a thread whose stack is the smallest there is: the report
// has to fit.
// expect tiny: double free of 0xP (class 64, owner heap 1, state queued)
// expect huge: double free of 0xP (huge block of 314572800 bytes, state released)
#include <limits.h>
#include <pthread.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // 16 KiB on x86-64, 128 on ARM64.
  if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0) return 1;
  pthread_t thread;
  const auto free_twice = [](void* pointer) -> void* {
    hakmem::Free(pointer);
    hakmem::Free(pointer);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, free_twice, block) != 0) return 1;
  pthread_join(thread, nullptr);
}
