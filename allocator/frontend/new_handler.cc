#include "allocator/frontend/new_handler.h"

#include <dlfcn.h>

#include <cstddef>
#include <new>

#include "allocator/base/raw_print.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

using GetNewHandler = NewHandler (*)();
using Throw = void (*)();

// By their mangled names, which libstdc++ and libc++ share. Absent in a program
// without a C++ runtime, and when a plugin brings it privately (RTLD_LOCAL).
constexpr char kGetNewHandlerName[] = "_ZSt15get_new_handlerv";
constexpr char kThrowBadAllocName[] = "_ZSt17__throw_bad_allocv";
extern "C" {
HAK_WEAK NewHandler HakGetNewHandler() __asm__("_ZSt15get_new_handlerv");
HAK_WEAK void HakThrowBadAlloc() __asm__("_ZSt17__throw_bad_allocv");

// What a throw of std::bad_alloc is made of (Itanium C++ ABI).
HAK_WEAK void* HakAllocateException(std::size_t) __asm__(
    "__cxa_allocate_exception");
HAK_WEAK void HakThrow(void* object, const void* type,
                       void (*destroy)(void*)) __asm__("__cxa_throw");
HAK_WEAK extern const void* const hak_bad_alloc_type[] __asm__(
    "_ZTISt9bad_alloc");
HAK_WEAK extern const void* const hak_bad_alloc_table[] __asm__(
    "_ZTVSt9bad_alloc");
HAK_WEAK void HakDestroyBadAlloc(void*) __asm__("_ZNSt9bad_allocD1Ev");
}

// Returns where a part is missing. A runtime from an archive has what the
// program refers to: whatever catches std::bad_alloc refers to all of it, while
// std::__throw_bad_alloc may be left out.
void ThrowByParts() {
  if (&HakAllocateException == nullptr || &HakThrow == nullptr ||
      &hak_bad_alloc_type == nullptr || &hak_bad_alloc_table == nullptr ||
      &HakDestroyBadAlloc == nullptr) {
    return;
  }
  // The object is a pointer to its virtual functions, behind an offset and a
  // type.
  static_assert(sizeof(std::bad_alloc) == sizeof(void*));
  void* const object = HakAllocateException(sizeof(std::bad_alloc));
  *static_cast<const void* const**>(object) = &hak_bad_alloc_table[2];
  HakThrow(object, &hak_bad_alloc_type, &HakDestroyBadAlloc);
}

// The function `name` of a C++ runtime that is loaded but not visible to
// hakmem; null when there is none.
void* FindInPrivateRuntime(const char* name) {
  constexpr const char* kRuntimes[] = {"libstdc++.so.6", "libc++.so.1"};
  for (const char* runtime : kRuntimes) {
    void* const library = dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const function = dlsym(library, name);
    // Whoever loaded the library, and called us, keeps it loaded.
    dlclose(library);
    if (function != nullptr) return function;
  }
  return nullptr;
}

}  // namespace

NewHandler CurrentNewHandler() {
  if (&HakGetNewHandler != nullptr) return HakGetNewHandler();
  const auto get_new_handler =
      reinterpret_cast<GetNewHandler>(FindInPrivateRuntime(kGetNewHandlerName));
  return get_new_handler == nullptr ? nullptr : get_new_handler();
}

void ThrowBadAlloc(std::size_t size) {
  if (&HakThrowBadAlloc != nullptr) HakThrowBadAlloc();
  ThrowByParts();
  const auto throw_bad_alloc =
      reinterpret_cast<Throw>(FindInPrivateRuntime(kThrowBadAllocName));
  if (throw_bad_alloc != nullptr) throw_bad_alloc();
  RawPrinter out;
  out.Text("hakmem: fatal: operator new of ")
      .Decimal(size)
      .Text(
          " bytes failed, and no C++ runtime is there to throw "
          "std::bad_alloc");
  NoteEnd();
  WriteWarning(out);
  AbortProcess();
}

}  // namespace hakmem
