// operator new fails in a program that has nothing to throw with.
// expect any: operator new of 9223372036854775808 bytes failed, and no C++ runtime is there to throw std::bad_alloc
// no log: it is no misuse, and there is nothing to return.
#include <dlfcn.h>

#include "allocator/tests/misuse/misuse.h"

int main() {
  if (dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv") != nullptr) return 1;
  const auto operator_new =
      reinterpret_cast<void* (*)(std::size_t)>(dlsym(RTLD_DEFAULT, "_Znwm"));
  operator_new(std::size_t{1} << 63);
}
