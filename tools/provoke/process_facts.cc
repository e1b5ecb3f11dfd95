#include "tools/provoke/process_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace hakmem::provoke {

long long NumberIn(const char* path, const char* name) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[8192];
  std::size_t length = 0;
  ssize_t got = 0;
  while (length < sizeof(text) - 1 &&
         (got = read(file, text + length, sizeof(text) - 1 - length)) > 0) {
    length += static_cast<std::size_t>(got);
  }
  close(file);
  text[length] = '\0';
  const char* at = std::strstr(text, name);
  if (at == nullptr) return -1;
  at += std::strlen(name);
  char* end = nullptr;
  const long long number = std::strtoll(at, &end, 10);
  return end == at ? -1 : number;
}

int WriteFile(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const std::size_t length = std::strlen(text);
  const int error =
      write(file, text, length) == static_cast<ssize_t>(length) ? 0 : errno;
  close(file);
  return error;
}

}  // namespace hakmem::provoke
