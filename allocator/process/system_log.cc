#include "allocator/process/system_log.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <syslog.h>

#include <cerrno>
#include <cstring>

#include "allocator/base/raw_print.h"
#include "allocator/base/system_call.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Returns 0 or the errno.
int SendLine(int fd, std::string_view line) {
  RawPrinter message;
  message.Text("<").Decimal(LOG_USER | LOG_CRIT).Text(">hakmem[");
  message.SignedDecimal(ProcessId()).Text("]: ").Text(line);
  const std::string_view text = message.text();
  for (;;) {
    const long sent =
        SystemCall(SYS_sendto, fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent != -EINTR) return ErrorOf(sent);
  }
}

}  // namespace

int SendToSystemLog(const char* socket_path, std::string_view text) {
  const auto fd = static_cast<int>(
      SystemCall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd < 0) return -fd;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path, sizeof(address.sun_path) - 1);
  int error_number =
      ErrorOf(SystemCall(SYS_connect, fd, &address, sizeof(address)));
  while (error_number == 0 && !text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    error_number = SendLine(fd, line);
    text.remove_prefix(line.size() < text.size() ? line.size() + 1
                                                 : text.size());
  }
  CloseFd(fd);
  return error_number;
}

}  // namespace hakmem
