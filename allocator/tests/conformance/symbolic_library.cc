// A library linked -Bsymbolic: its calls of new and delete reach its own, which
// are malloc and free, in whatever program.

#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  void* const block = malloc(size);
  if (block == nullptr) abort();
  return block;
}
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }

extern "C" __attribute__((visibility("default"))) void* MakeBlock(
    std::size_t size) {
  return ::operator new(size);
}
extern "C" __attribute__((visibility("default"))) void DropBlock(
    void* pointer) {
  ::operator delete(pointer);
}
