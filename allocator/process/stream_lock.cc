#include "allocator/process/stream_lock.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

// Exported by glibc, in no header: the thread that has the lock may take it
// again, as fork itself does. Weak: another libc may not have them.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_lock();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_unlock();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
[[gnu::weak]] void _IO_list_resetlock();
}

namespace hakmem {
namespace {

bool IsSingleThreaded() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

}  // namespace

bool LockStreamList() {
  if (IsSingleThreaded() || &_IO_list_lock == nullptr ||
      &_IO_list_unlock == nullptr || &_IO_list_resetlock == nullptr) {
    return false;
  }
  _IO_list_lock();
  return true;
}

void UnlockStreamList() { _IO_list_unlock(); }

void ResetStreamList() { _IO_list_resetlock(); }

}  // namespace hakmem
