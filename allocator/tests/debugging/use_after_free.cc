// Resizes a block that was freed.
#include <cstdlib>

extern "C" {

void* volatile g_block;

__attribute__((noinline)) void AllocateIt() { g_block = malloc(200'000); }
__attribute__((noinline)) void FreeIt() {
  free(g_block);
  asm volatile("");
}
}

int main() {
  AllocateIt();
  FreeIt();
  g_block = realloc(g_block, 300'000);
}
