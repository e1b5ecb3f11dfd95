// A signal handler allocates, and sooner or later it has interrupted malloc.
// expect span: malloc or free called by a signal handler that interrupted malloc or free
// no log: there is no call that could be refused
#include <signal.h>
#include <sys/time.h>

#include <cstdlib>

#include "allocator/tests/misuse/misuse.h"

namespace {

// Longer than the spans that a thread keeps for itself, without a lock.
void UseASpan() { std::free(hakmem::Opaque(std::malloc(2'000'000))); }

}  // namespace

int main() {
  signal(SIGALRM, [](int) { UseASpan(); });
  const itimerval often = {.it_interval = {.tv_sec = 0, .tv_usec = 200},
                           .it_value = {.tv_sec = 0, .tv_usec = 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 100'000'000; ++i) UseASpan();
}
