// A program that holds memory in known places: planted_program leak | peak |
// mixed | holes | again | step | nothing | growth FIRST_PROFILE. With "hold"
// before these it says when it is ready, and waits for the end of its input;
// with "churn" it allocates meanwhile, and with "survive" its first thread has
// ended before. Each byte of the input of "step" has it grow, of which it says
// so; an x has it begin anew, in the same process.

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kBlockBytes = 1024;
constexpr std::size_t kMiB = std::size_t{1} << 20;

using Block = std::array<char, kBlockBytes>;
using Blocks = std::vector<std::unique_ptr<Block>>;

// Takes no memory of its own while it is filled.
Blocks Room(std::size_t bytes) {
  Blocks blocks;
  blocks.reserve(bytes / kBlockBytes);
  return blocks;
}

template <typename Allocate>
void Fill(Blocks& blocks, Allocate allocate) {
  while (blocks.size() < blocks.capacity()) blocks.emplace_back(allocate());
}

// Each a place of its own; what they write keeps compilers from making one
// function of them.
[[gnu::noinline]] Block* Background() { return new Block{'b'}; }
[[gnu::noinline]] Block* Churn() { return new Block{'c'}; }
[[gnu::noinline]] Block* PlantedLeak() { return new Block{'l'}; }
[[gnu::noinline]] Block* PlantedPeak() { return new Block{'p'}; }
[[gnu::noinline]] Block* PlantedGrowth() { return new Block{'g'}; }
[[gnu::noinline]] Block* PlantedStep() { return new Block{'s'}; }

// Until the process ends.
void Keep(Blocks blocks) { new Blocks(std::move(blocks)); }

void Leak() {
  Blocks lost = Room(16 * kMiB);
  while (lost.size() < lost.capacity()) {
    lost.emplace_back(PlantedLeak());
    for (int i = 0; i < 8; ++i) std::unique_ptr<Block> freed(Churn());
  }
  Keep(std::move(lost));
}

void Peak() {
  Blocks background = Room(8 * kMiB);
  Fill(background, Background);
  Keep(std::move(background));
  Blocks peak = Room(32 * kMiB);
  Fill(peak, PlantedPeak);
}

// By a function of hakmem.h, if there is one.
bool WriteTo(int file, const char* function) {
  using Write = int (*)(int);
  const auto write = reinterpret_cast<Write>(::dlsym(RTLD_DEFAULT, function));
  return write != nullptr && write(file) == 0;
}

bool WriteProfile(const char* path) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  return file >= 0 && WriteTo(file, "hakmem_heap_profile") && close(file) == 0;
}

bool Grow(const char* first_profile) {
  Blocks background = Room(32 * kMiB);
  Fill(background, Background);
  Keep(std::move(background));
  Blocks some = Room(2 * kMiB);
  Fill(some, PlantedGrowth);
  Keep(std::move(some));
  if (!WriteProfile(first_profile)) return false;
  Blocks more = Room(8 * kMiB);
  Fill(more, PlantedGrowth);
  Keep(std::move(more));
  return true;
}

// Neither a call by itself nor data of its own: it works wherever it lies.
[[gnu::noinline]] void* PlantedAgain(void* (*allocate)(std::size_t)) {
  void* volatile block = allocate(kBlockBytes);
  return block;
}

// Its code once more, from the file.
bool Again() {
  const auto function = reinterpret_cast<std::uintptr_t>(&PlantedAgain);
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  const int file = ::open("/proc/self/exe", O_RDONLY);
  char line[4096];
  unsigned long begin = 0;
  unsigned long end = 0;
  unsigned long offset = 0;
  while (std::fgets(line, sizeof(line), maps) != nullptr) {
    if (std::sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 &&
        begin <= function && function < end) {
      break;
    }
  }
  void* const code = ::mmap(nullptr, end - begin, PROT_READ | PROT_EXEC,
                            MAP_PRIVATE, file, static_cast<off_t>(offset));
  if (code == MAP_FAILED) return false;
  const auto again = reinterpret_cast<decltype(&PlantedAgain)>(
      reinterpret_cast<std::uintptr_t>(code) + (function - begin));
  Blocks some = Room(8 * kMiB);
  while (some.size() < some.capacity()) {
    some.emplace_back(static_cast<Block*>(again(std::malloc)));
  }
  Keep(std::move(some));
  return true;
}

void Step() {
  Blocks more = Room(8 * kMiB);
  Fill(more, PlantedStep);
  Keep(std::move(more));
}

// Of 4,096 blocks every other one is back in its slab, and ten more are in this
// thread's cache.
void Holes() {
  Blocks some = Room(4 * kMiB);
  Fill(some, Background);
  for (std::size_t i = 0; i < some.size(); i += 2) some[i] = nullptr;
  ::malloc_trim(0);
  for (std::size_t i = 1; i < 20; i += 2) some[i] = nullptr;
  Keep(std::move(some));
}

// Something of each route, some of it freed by another thread, and resized.
void Mixed() {
  std::vector<void*> blocks;
  for (const std::size_t bytes : {100, 10'000, 1'000'000, 300'000'000}) {
    for (int i = 0; i < 100; ++i) blocks.push_back(std::malloc(bytes));
  }
  for (std::size_t i = 0; i < blocks.size(); i += 10) {
    blocks[i] = std::realloc(blocks[i], 50'000);
  }
  std::thread other([&blocks] {
    for (std::size_t i = 0; i < blocks.size(); i += 2) std::free(blocks[i]);
  });
  other.join();
}

// The numbers of hakmem_get_statistics, if there is one, in a line.
void PrintStatistics() {
  using Get = std::size_t (*)(void*, std::size_t);
  const auto get =
      reinterpret_cast<Get>(::dlsym(RTLD_DEFAULT, "hakmem_get_statistics"));
  std::uint64_t numbers[64] = {};
  const std::size_t bytes = get == nullptr ? 0 : get(numbers, sizeof(numbers));
  for (std::size_t i = 0; i < bytes / sizeof(numbers[0]); ++i) {
    std::printf("%llu ", static_cast<unsigned long long>(numbers[i]));
  }
  std::puts("");
}

// By a block that no thread keeps.
void LeaveTheFastPath() {
  void* volatile block = std::malloc(2 * kMiB);
  std::free(block);
  ::usleep(1000);
}

// In a thread beside the first one, which ends.
[[noreturn]] void Survive() {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::thread([first = ::pthread_self()] {
    ::pthread_join(first, nullptr);
    std::puts("ready");
    std::fflush(stdout);
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) LeaveTheFastPath();
    std::exit(0);
  }).detach();
  ::pthread_exit(nullptr);
}

// Whoever likes may look at it until its input ends. From the numbers on,
// it allocates nothing unless it churns. Asked to tell, it has written what
// malloc_stats(), or a function of hakmem.h, knows by then.
void Wait(std::string_view how, bool steps) {
  const bool churns = how == "churn" || how == "work";
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  std::atomic<bool> ended = false;
  std::thread churn;
  if (churns) {
    churn = std::thread([&ended, how] {
      while (!ended && how == "churn") std::unique_ptr<Block> freed(Churn());
      while (!ended) LeaveTheFastPath();
    });
  }
  std::puts("ready");
  PrintStatistics();
  if (how == "tell") ::malloc_stats();
  if (how == "measure") WriteTo(STDERR_FILENO, "hakmem_write_openmetrics");
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
    if (!steps) continue;
    if (byte == 'x') ::execl("/proc/self/exe", "x", "hold", "step", nullptr);
    Step();
    std::puts("grown");
    std::fflush(stdout);
  }
  ended = true;
  if (churns) churn.join();
}

int Run(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 2 && mode == "survive") {
    const int status = Run(argc - 1, argv + 1);
    if (status == 0) Survive();
    return status;
  }
  if (argc > 2 && (mode == "hold" || mode == "tell" || mode == "measure" ||
                   mode == "churn" || mode == "work")) {
    const int status = Run(argc - 1, argv + 1);
    if (status == 0) Wait(mode, std::string_view(argv[2]) == "step");
    return status;
  }
  if (mode == "mixed") {
    Mixed();
  } else if (mode == "again") {
    return Again() ? 0 : 1;
  } else if (mode == "step") {
    Leak();
  } else if (mode == "holes") {
    Holes();
  } else if (mode == "leak") {
    Leak();
  } else if (mode == "peak") {
    Peak();
  } else if (mode == "growth" && argc > 2) {
    return Grow(argv[2]) ? 0 : 1;
  } else if (mode != "nothing") {
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int status = Run(argc, argv);
  // Has it in the stacks of what it calls.
  std::fflush(stdout);
  return status;
}
