// Preloaded into a command by its tests: what it sleeps, they decide. Each
// sleep says on the socket HAK_TEST_PAUSES that it has begun, and ends with the
// byte that it gets, with the socket, or by a signal.
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace {

// `signals`: descriptor of those that end it though they are blocked; -1: there
// are none. Returns which one did, 0 for none, -1 for a handler.
int Pause(int signals, siginfo_t* info = nullptr) {
  const char* socket = ::getenv("HAK_TEST_PAUSES");
  if (socket == nullptr) return 0;
  const int file = std::atoi(socket);
  char byte = 's';
  if (::send(file, &byte, 1, MSG_NOSIGNAL) != 1) return 0;
  // Unlike recv, never begun anew after a signal.
  pollfd ready[] = {{.fd = file, .events = POLLIN, .revents = 0},
                    {.fd = signals, .events = POLLIN, .revents = 0}};
  if (::poll(ready, 2, -1) < 0) return -1;
  signalfd_siginfo came = {};
  if (ready[1].revents != 0 &&
      ::read(signals, &came, sizeof(came)) == sizeof(came)) {
    if (info != nullptr) {
      *info = {};
      info->si_signo = static_cast<int>(came.ssi_signo);
      info->si_code = came.ssi_code;
    }
    return static_cast<int>(came.ssi_signo);
  }
  ::recv(file, &byte, 1, 0);
  return 0;
}

}  // namespace

extern "C" int nanosleep(const timespec* /*time*/, timespec* left) {
  if (left != nullptr) *left = {};
  return Pause(-1);
}

extern "C" int usleep(useconds_t /*microseconds*/) { return Pause(-1); }

extern "C" int sigtimedwait(const sigset_t* signals, siginfo_t* info,
                            const timespec* /*time*/) {
  const int descriptor = ::signalfd(-1, signals, SFD_CLOEXEC);
  const int signal = Pause(descriptor, info);
  ::close(descriptor);
  if (signal > 0) return signal;
  errno = signal == 0 ? EAGAIN : EINTR;
  return -1;
}
