// The heap profile written down.

#include <atomic>
#include <cerrno>

#include "allocator/base/compiler.h"
#include "allocator/config/version.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/exit_output.h"
#include "allocator/hakmem.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/process.h"
#include "allocator/profile/profile_text.h"

namespace hakmem {
namespace {

// Longer than the stack of a handler of a signal should be asked for. Written
// and read at the end of the process alone.
constinit ProfileRoom g_room = {};
// The process whose profile is or was written at its end: the child of a fork
// has its own. Written and read by whoever comes to their end.
constinit std::atomic<int> g_told{0};

// 0, or the errno of what could not be written.
int WriteTo(int fd, ProfileRoom& room, bool waits) {
  FdSink output(fd);
  WriteProfile(ProductProfile(),
               {.process_id = ProcessId(),
                .program = ProgramName(),
                .version = kVersion,
                .variant = ProductVariant(),
                .time_ns = WallClockNs()},
               output.sink(), room, waits);
  return output.error_number;
}

}  // namespace

void WriteProfileAtEnd(const char* value, int signal) {
  if (value[0] == '\0' || !ProductProfile().on()) return;
  const int process_id = ProcessId();
  if (g_told.exchange(process_id, std::memory_order_relaxed) == process_id) {
    return;
  }
  const int fd =
      OpenExitOutput("HAKMEM_HEAP_PROFILE", value, FileReaders::kOwner);
  if (fd < 0) return;
  CloseExitOutput("HAKMEM_HEAP_PROFILE", value, fd,
                  WriteTo(fd, g_room, /*waits=*/signal == 0));
}

}  // namespace hakmem

extern "C" HAK_EXPORT int hakmem_heap_profile(int fd) {
  hakmem::ProfileRoom room;
  const int error_number = hakmem::ProductProfile().on()
                               ? hakmem::WriteTo(fd, room, /*waits=*/true)
                               : ENOTSUP;
  if (error_number == 0) return 0;
  errno = error_number;
  return -1;
}
