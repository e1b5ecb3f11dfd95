// A program that deletes what a library's operator new made, and the other way
// round, where one of the two has operators of its own: both families are
// malloc's, and nothing is at fault. It loads the library when it has run for a
// while.

#include <dlfcn.h>
#include <stdio.h>

#include <cstddef>
#include <new>
#include <thread>

namespace {

// Tiny, Pool, span and Huge.
constexpr std::size_t kSizes[] = {5, 5'000, 200'000, 5'000'000};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ::operator delete(::operator new(100));
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  const auto make =
      reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "MakeBlock"));
  const auto drop =
      reinterpret_cast<void (*)(void*)>(dlsym(library, "DropBlock"));
  if (make == nullptr || drop == nullptr) return 4;
  for (const std::size_t size : kSizes) {
    ::operator delete(make(size));
    ::operator delete(make(size), size);
    drop(::operator new(size));
    void* const block = make(size);
    std::thread([=] { ::operator delete(block); }).join();
  }
}
