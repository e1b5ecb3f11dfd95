// Reads from blocks of size 0: of each call, one.
// expect[hardened debug] malloc: SIGSEGV
// expect[hardened debug] calloc: SIGSEGV
// expect[hardened debug] new: SIGSEGV
// expect[hardened debug] aligned: SIGSEGV
// expect[hardened debug] realloc: SIGSEGV
#include <new>

#include "allocator/tests/misuse/misuse.h"

namespace {

void* EmptyBlock(const char* call) {
  if (strcmp(call, "malloc") == 0) return malloc(0);
  if (strcmp(call, "calloc") == 0) return calloc(0, 100);
  if (strcmp(call, "new") == 0) return operator new(0);
  if (strcmp(call, "aligned") == 0) return aligned_alloc(4096, 0);
  return realloc(malloc(0), 0) == nullptr ? malloc(0) : nullptr;
}

}  // namespace

int main(int, char** argv) {
  using namespace hakmem;
  const char* block = static_cast<const char*>(Opaque(EmptyBlock(argv[1])));
  return *Opaque(block);
}
