// dlopen, as far as a program's library reaches it: without RTLD_DEEPBIND.
//
// A library opened with that flag looks for symbols in itself and in what it
// needs, libc among them, before the program: it would find libc's malloc and
// free, and damage libc's heap with the first block that it frees and did not
// allocate. PHP opens all its extensions so.

#include <dlfcn.h>

#include "allocator/base/compiler.h"
#include "allocator/config/options.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/platform/next_dlopen.h"

namespace hakmem {
namespace {

// As the C library has declared it: they differ.
constexpr bool kDlopenIsNoexcept = noexcept(dlopen(nullptr, 0));

}  // namespace
}  // namespace hakmem

// Weak: in a program without a dynamic linker, libc's own may stand beside it.
extern "C" [[gnu::weak]] HAK_EXPORT void* dlopen(
    const char* file, int mode) noexcept(hakmem::kDlopenIsNoexcept) {
  // A library's constructor may come here before anything has allocated.
  hakmem::ProductStart();
  if (hakmem::CurrentOptions().deep_bind == 0) {
    mode = hakmem::WithoutDeepBind(mode);
  }
  // libc looks into the search path of the object that it returns to. So this
  // has to be a last call, which compilers make by a jump.
  return hakmem::NextDlopen()(file, mode);
}
