// Functions of libc that a program has put in the place of libc's: each
// allocates blocks of several lengths, looks up the function behind it, and
// calls that. Nothing is wrong with it: libc's own malloc calls none of them.
//
// HAKMEM_TEST_INTERPOSED names the functions that do so, with a comma behind
// each; all, if it is not set. The others are passed on.
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>

#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

extern "C" char** environ;

namespace {

// Not getenv, which is one of them.
const char* Chosen() {
  constexpr char kName[] = "HAKMEM_TEST_INTERPOSED=";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, kName, sizeof(kName) - 1) == 0) {
      return *entry + sizeof(kName) - 1;
    }
  }
  return nullptr;
}

bool IsChosen(const char* name) {
  const char* at = Chosen();
  if (at == nullptr) return true;
  const std::size_t length = strlen(name);
  for (; (at = strstr(at, name)) != nullptr; at += length) {
    if (at[length] == ',') return true;
  }
  return false;
}

void Allocate() {
  for (const std::size_t size :
       {24ul, 700ul, 9'000ul, 100'000ul, 3'000'000ul}) {
    void* volatile block = malloc(size);
    if (block == nullptr) abort();
    static_cast<volatile char*>(block)[size / 2] = 1;
    free(block);
  }
}

template <typename Function>
Function Behind(const char* name, Function /*type*/) {
  if (IsChosen(name)) Allocate();
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define STANDS_BEFORE(result, name, parameters, arguments)                   \
  extern "C" __attribute__((visibility("default"))) result name parameters { \
    return Behind(#name, static_cast<result(*) parameters>(nullptr))         \
        arguments;                                                           \
  }

struct timeval;
struct stat;
struct rlimit;
struct sigaction;

STANDS_BEFORE(int, clock_gettime, (clockid_t a, timespec* b), (a, b));
STANDS_BEFORE(int, gettimeofday, (timeval * a, void* b), (a, b));
STANDS_BEFORE(time_t, time, (time_t* a), (a));
STANDS_BEFORE(void*, mmap,
              (void* a, std::size_t b, int c, int d, int e, off_t f),
              (a, b, c, d, e, f));
STANDS_BEFORE(void*, mmap64,
              (void* a, std::size_t b, int c, int d, int e, off_t f),
              (a, b, c, d, e, f));
STANDS_BEFORE(int, munmap, (void* a, std::size_t b), (a, b));
STANDS_BEFORE(int, madvise, (void* a, std::size_t b, int c), (a, b, c));
STANDS_BEFORE(int, mincore, (void* a, std::size_t b, unsigned char* c),
              (a, b, c));
STANDS_BEFORE(int, mprotect, (void* a, std::size_t b, int c), (a, b, c));
STANDS_BEFORE(int, getpagesize, (), ());
STANDS_BEFORE(long, sysconf, (int a), (a));
STANDS_BEFORE(unsigned long, getauxval, (unsigned long a), (a));
STANDS_BEFORE(int, pthread_key_create, (unsigned* a, void (*b)(void*)), (a, b));
STANDS_BEFORE(int, pthread_key_delete, (unsigned a), (a));
STANDS_BEFORE(int, pthread_setspecific, (unsigned a, const void* b), (a, b));
STANDS_BEFORE(void*, pthread_getspecific, (unsigned a), (a));
STANDS_BEFORE(int, pthread_sigmask, (int a, const void* b, void* c), (a, b, c));
STANDS_BEFORE(int, sigaction,
              (int a, const struct sigaction* b, struct sigaction* c),
              (a, b, c));
STANDS_BEFORE(int, sigpending, (void* a), (a));
STANDS_BEFORE(pid_t, getpid, (), ());
STANDS_BEFORE(pid_t, gettid, (), ());
STANDS_BEFORE(int, sched_yield, (), ());
STANDS_BEFORE(int, nanosleep, (const timespec* a, timespec* b), (a, b));
STANDS_BEFORE(ssize_t, getrandom, (void* a, std::size_t b, unsigned c),
              (a, b, c));
STANDS_BEFORE(ssize_t, read, (int a, void* b, std::size_t c), (a, b, c));
STANDS_BEFORE(ssize_t, pread, (int a, void* b, std::size_t c, off_t d),
              (a, b, c, d));
STANDS_BEFORE(ssize_t, write, (int a, const void* b, std::size_t c), (a, b, c));
STANDS_BEFORE(int, close, (int a), (a));
STANDS_BEFORE(int, fstat, (int a, struct stat* b), (a, b));
STANDS_BEFORE(int, getrlimit, (int a, struct rlimit* b), (a, b));
STANDS_BEFORE(ssize_t, readlink, (const char* a, char* b, std::size_t c),
              (a, b, c));
STANDS_BEFORE(char*, getenv, (const char* a), (a));
STANDS_BEFORE(char*, secure_getenv, (const char* a), (a));
STANDS_BEFORE(void*, dlopen, (const char* a, int b), (a, b));

extern "C" {
__attribute__((visibility("default"))) void* mremap(void* from,
                                                    std::size_t old_bytes,
                                                    std::size_t bytes,
                                                    int flags, ...) {
  va_list list;
  va_start(list, flags);
  void* const to = va_arg(list, void*);
  va_end(list);
  using Mremap = void* (*)(void*, std::size_t, std::size_t, int, ...);
  return Behind("mremap", Mremap())(from, old_bytes, bytes, flags, to);
}

__attribute__((visibility("default"))) long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  using Syscall = long (*)(long, ...);
  return Behind("syscall", Syscall())(number, words[0], words[1], words[2],
                                      words[3], words[4], words[5]);
}

__attribute__((visibility("default"))) int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(list, unsigned long);
  va_end(list);
  using Prctl = int (*)(int, ...);
  return Behind("prctl", Prctl())(option, words[0], words[1], words[2],
                                  words[3]);
}
}
