#include "allocator/process/thread_identity.h"

#include <atomic>

#include "allocator/base/compiler.h"
#include "allocator/base/line_end.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/platform/start_filter.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

struct Known {
  ThreadIdentity identity;
  std::uint64_t until_ns = 0;  // 0: nothing is known
};
constinit thread_local Known t_known HAK_TLS_INITIAL_EXEC;

// What is known without a call.
ThreadIdentity RecordedIdentity() {
  ThreadIdentity identity = t_known.identity;
  identity.process_id = NotedProcessId();
  identity.thread_id = RecordedThreadId();
  return identity;
}

}  // namespace

ThreadIdentity CurrentIdentity(std::uint64_t now_ns) {
  if (now_ns < t_known.until_ns) return t_known.identity;
  if (IsFiltered()) return RecordedIdentity();
  ThreadIdentity identity = {.process_id = ProcessId(),
                             .thread_id = ThreadId()};
  ThreadName(identity.thread_name);
  // A signal handler of this thread finds all of it or nothing.
  t_known.until_ns = 0;
  // release: keeps the order as the thread's own handlers see it.
  std::atomic_signal_fence(std::memory_order_release);
  t_known.identity = identity;
  // release: as above.
  std::atomic_signal_fence(std::memory_order_release);
  t_known.until_ns = now_ns + kIdentityIntervalNs;
  return identity;
}

void NoteProcess() {
  t_known.until_ns = 0;
  NoteProcessId(RecordedThreadId());
}

}  // namespace hakmem
