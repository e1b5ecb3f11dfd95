// deep_bind LIBRARY hakmem|libc: opens libplugin.so with RTLD_DEEPBIND. Its
// malloc must be the one named: libc's first call takes memory by brk, which
// hakmem never does.

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* const before = sbrk(0);
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  const auto allocate =
      reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "PluginNew"));
  const auto release =
      reinterpret_cast<void (*)(void*)>(dlsym(library, "PluginDelete"));
  if (allocate == nullptr || release == nullptr) return 4;
  release(allocate(100));
  const char* const found = sbrk(0) == before ? "hakmem" : "libc";
  if (strcmp(found, argv[2]) == 0) return 0;
  fprintf(stderr, "the library calls the malloc of %s\n", found);
  return 1;
}
