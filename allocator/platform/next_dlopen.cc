#include "allocator/platform/next_dlopen.h"

#include <dlfcn.h>

namespace hakmem {
namespace {

#if defined(__GLIBC__)
constexpr int kDeepBind = RTLD_DEEPBIND;

// In a program without a dynamic linker there is no next one to be found.
void* OpenInBase(const char* file, int mode) {
  return dlmopen(LM_ID_BASE, file, mode);
}
#else
constexpr int kDeepBind = 0;

void* OpenInBase(const char* /*file*/, int /*mode*/) { return nullptr; }
#endif

}  // namespace

Dlopen NextDlopen() {
  const auto next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  return next == nullptr ? &OpenInBase : next;
}

int WithoutDeepBind(int mode) { return mode & ~kDeepBind; }

}  // namespace hakmem
