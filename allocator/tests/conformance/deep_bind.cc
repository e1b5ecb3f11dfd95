// deep_bind LIBRARY hakmem|libc [first]: opens libplugin.so with
// RTLD_DEEPBIND; "first": before anything has allocated. Its malloc must be the
// one named: libc's first call takes memory by brk, which hakmem never does.

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

void* g_break = nullptr;  // before what the library's constructors allocate
void* Open(char** argv) {
  g_break = sbrk(0);
  return dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
}

void* g_opened_first = nullptr;
void OpenFirst(int argc, char** argv, char** /*environment*/) {
  if (argc == 4) g_opened_first = Open(argv);
}
__attribute__((section(".preinit_array"),
               used)) void (*g_open_first)(int, char**, char**) = &OpenFirst;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  void* const library = argc == 4 ? g_opened_first : Open(argv);
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
  const char* const found = sbrk(0) == g_break ? "hakmem" : "libc";
  if (strcmp(found, argv[2]) == 0) return 0;
  fprintf(stderr, "the library calls the malloc of %s\n", found);
  return 1;
}
