// Preloaded into a command by its tests: what it sleeps, they decide. Each
// sleep says on the socket HAK_TEST_PAUSES that it has begun, and ends with the
// byte that it gets, with the socket, or by a signal.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

int Pause() {
  const char* socket = ::getenv("HAK_TEST_PAUSES");
  if (socket == nullptr) return 0;
  const int file = std::atoi(socket);
  char byte = 's';
  if (::send(file, &byte, 1, MSG_NOSIGNAL) != 1) return 0;
  // Unlike recv, never begun anew after a signal.
  pollfd ready = {.fd = file, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, -1) < 0) return -1;
  ::recv(file, &byte, 1, 0);
  return 0;
}

}  // namespace

extern "C" int nanosleep(const timespec* /*time*/, timespec* left) {
  if (left != nullptr) *left = {};
  return Pause();
}

extern "C" int usleep(useconds_t /*microseconds*/) { return Pause(); }
