#include "allocator/process/thread_identity.h"

#include <atomic>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

struct Known {
  ThreadIdentity identity;
  std::uint64_t until_ns = 0;  // 0: nothing is known
};
constinit thread_local Known t_known HAK_TLS_INITIAL_EXEC;

}  // namespace

ThreadIdentity CurrentIdentity(std::uint64_t now_ns) {
  if (now_ns < t_known.until_ns || IsFilterNoted()) return t_known.identity;
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

void ForgetIdentity() { t_known.until_ns = 0; }

}  // namespace hakmem
