// A signal handler allocates, and sooner or later it has interrupted malloc.
// expect span: malloc or free called in the middle of malloc or free
// no log: there is no call that could be refused
#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "allocator/tests/misuse/misuse.h"

namespace {

// Longer than the spans that a thread keeps for itself, without a lock.
void UseASpan() { std::free(hakmem::Opaque(std::malloc(2'000'000))); }

}  // namespace

int main() {
  signal(SIGALRM, [](int) { UseASpan(); });
  std::thread([self = pthread_self()] {
    for (;;) pthread_kill(self, SIGALRM);
  }).detach();
  for (int i = 0; i < 100'000'000; ++i) UseASpan();
}
