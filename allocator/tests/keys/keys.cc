// A program's pthread keys: how many there are for it beside the allocator's,
// and what becomes of malloc when the program has taken all of them first.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kThreads = 300;
constexpr std::array<std::size_t, 6> kSizes = {1,     100,     3000,
                                               60000, 200'000, 3'000'000};

int TakeKeys() {
  int keys = 0;
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) ++keys;
  return keys;
}

// Before any library's constructor.
int g_taken = 0;
void TakeFirst(int argc, char** argv, char** /*environment*/) {
  if (argc == 2 && strcmp(argv[1], "take") == 0) g_taken = TakeKeys();
}
__attribute__((section(".preinit_array"),
               used)) void (*g_take_first)(int, char**, char**) = &TakeFirst;

void Expect(bool held, const char* what) {
  if (held) return;
  fprintf(stderr, "keys: %s\n", what);
  exit(1);
}

bool Holds(const char* block, std::size_t size, char value) {
  return block[0] == value && block[size - 1] == value;
}

// Blocks of every route come, grow and go; the last stays.
void* UseMalloc(void* /*argument*/) {
  for (const std::size_t size : kSizes) {
    auto* block = static_cast<char*>(malloc(size));
    Expect(block != nullptr, "malloc failed");
    memset(block, 1, size);
    block = static_cast<char*>(realloc(block, size + size / 2));
    Expect(block != nullptr && Holds(block, size, 1), "realloc lost bytes");
    free(block);
    free(calloc(3, size));
  }
  return memset(malloc(100), 2, 100);
}

void UseThreads() {
  std::array<char*, kThreads> left = {};
  for (char*& block : left) {
    pthread_t thread;
    void* result = nullptr;
    Expect(pthread_create(&thread, nullptr, &UseMalloc, nullptr) == 0,
           "no thread");
    pthread_join(thread, &result);
    block = static_cast<char*>(result);
  }
  for (char* block : left) {
    Expect(Holds(block, 100, 2), "a block did not outlive its thread");
    free(block);
  }
}

void UseFork() {
  const pid_t child = fork();
  if (child == 0) {
    free(UseMalloc(nullptr));
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  Expect(status == 0, "the child failed");
}

}  // namespace

int main(int argc, char** argv) {
  const bool counts = argc == 3 && strcmp(argv[1], "count") == 0;
  Expect(counts || g_taken > 1000, "usage: keys count KEYS | keys take");
  free(UseMalloc(nullptr));
  UseThreads();
  UseFork();
  if (counts) Expect(TakeKeys() == atoi(argv[2]), "other keys are taken");
  return 0;
}
