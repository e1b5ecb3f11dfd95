// Frees a block twice, from two places.
#include <cstdlib>

extern "C" {

void* volatile g_block;

__attribute__((noinline)) void AllocateIt() { g_block = malloc(40); }
__attribute__((noinline)) void FreeIt() {
  free(g_block);
  asm volatile("");
}
__attribute__((noinline)) void FreeItAgain() {
  free(g_block);
  asm volatile("");
}
}

int main() {
  AllocateIt();
  FreeIt();
  FreeItAgain();
}
