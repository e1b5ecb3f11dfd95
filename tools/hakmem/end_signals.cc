#include "tools/hakmem/end_signals.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/time/clock.h"

namespace hakmem::tools {

EndSignals::EndSignals(std::initializer_list<int> signals) {
  ::sigemptyset(&signals_);
  for (const int signal : signals) ::sigaddset(&signals_, signal);
  ::sigprocmask(SIG_BLOCK, &signals_, &before_);
}

EndSignals::~EndSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

bool EndSignals::ComeWithin(absl::Duration time) const {
  const absl::Time end = absl::Now() + time;
  for (;;) {
    const timespec left =
        absl::ToTimespec(std::max(end - absl::Now(), absl::ZeroDuration()));
    if (::sigtimedwait(&signals_, nullptr, &left) > 0) return true;
    // Another signal's handler, or a stop, has interrupted it.
    if (errno != EINTR) return false;
  }
}

}  // namespace hakmem::tools
