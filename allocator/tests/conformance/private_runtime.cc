// A program without a C++ runtime of its own: it loads one privately, with a
// library that needs it. hakmem's operator new cannot see that runtime, yet
// std::bad_alloc has to come out of it.

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv") != nullptr) {
    fprintf(stderr, "this program has a C++ runtime; it tests nothing\n");
    return 3;
  }
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 4;
  }
  const auto check =
      reinterpret_cast<const char* (*)()>(dlsym(library, "CheckOperators"));
  if (check == nullptr) return 5;
  const char* const complaint = check();
  if (complaint == nullptr) return 0;
  fprintf(stderr, "%s\n", complaint);
  return 1;
}
