// A program that has an operator new of its own gets its blocks of it, though
// the compiler calls ours with a token.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "allocator/tests/tokens/token_calls.h"

namespace {

int g_calls = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++g_calls;
  return malloc(size);
}
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }

int main() {
  free(__alloc_token__Znwm(64, hakmem::kPointerToken));
  free(__alloc_token_1__Znwm(64));
  // As the standard says of arrays.
  free(__alloc_token__Znam(64, hakmem::kDataToken));
  if (g_calls == 3) return 0;
  fprintf(stderr, "the program's own was called %d times\n", g_calls);
  return 1;
}
