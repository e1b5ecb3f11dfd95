// Operators that are malloc and free. In a library linked -Bsymbolic its calls
// reach these, in whatever program.

#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  void* const block = malloc(size);
  if (block == nullptr) abort();
  return block;
}
void operator delete(void* pointer) noexcept { free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }
