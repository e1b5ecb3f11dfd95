// A signal handler allocates, and sooner or later it has interrupted malloc.
// expect span: malloc or free called by a signal handler that interrupted malloc or free
// no log: there is no call that could be refused
#include <signal.h>
#include <sys/time.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  static const char* const route = argv[1];
  signal(SIGALRM, [](int) { hakmem::Free(hakmem::Allocate(route)); });
  const itimerval often = {.it_interval = {.tv_sec = 0, .tv_usec = 200},
                           .it_value = {.tv_sec = 0, .tv_usec = 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 100'000'000; ++i) {
    hakmem::Free(hakmem::Allocate(route));
  }
}
