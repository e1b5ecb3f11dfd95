// A sized delete names another size than was asked for.
// expect whole SIGABRT: wrong-size free of 0xP (given 47 bytes, guarded block of 48 bytes)
// expect odd SIGABRT: wrong-size free of 0xP (given 99 bytes, guarded block of 100 bytes)
// expect large SIGABRT: wrong-size free of 0xP (given 19999 bytes, guarded block of 20000 bytes)
#include <new>

#include "allocator/tests/guards/guards.h"

namespace {

[[gnu::noinline]] void* New(std::size_t size) {
  return hakmem::Opaque(::operator new(size));
}

}  // namespace

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  void* const block = New(size);
  ::operator delete(block, size - 1);
}
