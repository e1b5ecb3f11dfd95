#include "allocator/process/stream_lock.h"

#include "allocator/platform/single_threaded.h"

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
