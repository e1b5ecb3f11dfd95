// A library that makes and deletes blocks by whatever operators it was linked
// with.

#include <cstddef>
#include <new>

extern "C" __attribute__((visibility("default"))) void* MakeBlock(
    std::size_t size) {
  return ::operator new(size);
}
extern "C" __attribute__((visibility("default"))) void DropBlock(
    void* pointer) {
  ::operator delete(pointer);
}
