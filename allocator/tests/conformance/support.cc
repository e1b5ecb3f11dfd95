#include "allocator/tests/conformance/support.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hakmem {
namespace {

constexpr std::size_t kEndBytes = 4096;
constexpr std::size_t kSteps = 256;

unsigned char ByteAt(std::size_t offset, unsigned seed) {
  return static_cast<unsigned char>(offset * 131 + seed * 29 + 7);
}

// Calls `visit(offset)` for each offset of a block that is looked at.
template <typename Visit>
void ForLookedAtOffsets(std::size_t size, Visit visit) {
  if (size <= 4 * kEndBytes) {
    for (std::size_t i = 0; i < size; ++i) visit(i);
    return;
  }
  for (std::size_t i = 0; i < kEndBytes; ++i) visit(i);
  const std::size_t step = size / kSteps | 1;
  for (std::size_t i = kEndBytes; i < size; i += step) visit(i);
  for (std::size_t i = size - 64; i < size; ++i) visit(i);
}

// Linked in, the functions are found by the linker; preloaded, by dlsym.
extern "C" {
__attribute__((weak)) const char* hakmem_version();
__attribute__((weak)) const char* hakmem_variant();
__attribute__((weak)) std::size_t hakmem_get_statistics(hakmem_statistics*,
                                                        std::size_t);
__attribute__((weak)) std::size_t hakmem_purge();
__attribute__((weak)) std::size_t hakmem_prewarm(std::size_t, std::size_t);
__attribute__((weak)) int hakmem_heap_profile(int);
__attribute__((weak)) int hakmem_write_openmetrics(int);
__attribute__((weak)) std::size_t hakmem_failure_events(hakmem_failure_event*,
                                                        std::size_t,
                                                        std::size_t);
__attribute__((weak)) void hakmem_set_failure_handler(hakmem_failure_handler,
                                                      void*);
__attribute__((weak)) void free_sized(void*, std::size_t);
__attribute__((weak)) void free_aligned_sized(void*, std::size_t, std::size_t);
}

template <typename Function>
Function Find(Function linked, const char* name) {
  if (linked != nullptr) return linked;
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

[[noreturn]] void ExecSelf(const ChildRun& run, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const std::string& variable : run.environment) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(),
           variable.substr(equals + 1).c_str(), 1);
  }
  // What bazel tells the parent is not for the child.
  for (const char* name :
       {"TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", "TESTBRIDGE_TEST_ONLY",
        "XML_OUTPUT_FILE", "GTEST_FILTER", "GTEST_SHARD_INDEX",
        "GTEST_TOTAL_SHARDS"}) {
    unsetenv(name);
  }
  std::string filter = "--gtest_filter=" + run.test;
  std::string disabled = "--gtest_also_run_disabled_tests";
  // By its name, which warnings tell.
  std::string program = std::filesystem::read_symlink("/proc/self/exe");
  char* const arguments[] = {program.data(), filter.data(), disabled.data(),
                             nullptr};
  if (run.before_exec) run.before_exec();
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

void FillBlock(void* block, std::size_t size, unsigned seed) {
  auto* const bytes = static_cast<unsigned char*>(block);
  ForLookedAtOffsets(
      size, [&](std::size_t offset) { bytes[offset] = ByteAt(offset, seed); });
}

bool BlockHolds(const void* block, std::size_t size, unsigned seed) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  bool holds = true;
  ForLookedAtOffsets(size, [&](std::size_t offset) {
    holds = holds && bytes[offset] == ByteAt(offset, seed);
  });
  return holds;
}

const HakmemApi& Hakmem() {
  static const HakmemApi* const api = new HakmemApi{
      .version = Find(&hakmem_version, "hakmem_version"),
      .variant = Find(&hakmem_variant, "hakmem_variant"),
      .get_statistics = Find(&hakmem_get_statistics, "hakmem_get_statistics"),
      .purge = Find(&hakmem_purge, "hakmem_purge"),
      .prewarm = Find(&hakmem_prewarm, "hakmem_prewarm"),
      .failure_events = Find(&hakmem_failure_events, "hakmem_failure_events"),
      .heap_profile = Find(&hakmem_heap_profile, "hakmem_heap_profile"),
      .write_openmetrics =
          Find(&hakmem_write_openmetrics, "hakmem_write_openmetrics"),
      .set_failure_handler =
          Find(&hakmem_set_failure_handler, "hakmem_set_failure_handler"),
      .free_sized = Find(&free_sized, "free_sized"),
      .free_aligned_sized = Find(&free_aligned_sized, "free_aligned_sized")};
  return *api;
}

int RunInFork(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

ChildResult RunChild(const ChildRun& run) {
  int ends[2];
  ChildResult result;
  if (pipe(ends) != 0) return {.wait_status = -1, .output = "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    ExecSelf(run, ends[1]);
  }
  close(ends[1]);
  char buffer[4096];
  ssize_t length = 0;
  while ((length = read(ends[0], buffer, sizeof(buffer))) > 0) {
    result.output.append(buffer, static_cast<std::size_t>(length));
  }
  close(ends[0]);
  waitpid(child, &result.wait_status, 0);
  return result;
}

bool ToldWithProcess(const ChildResult& child, const std::string& text) {
  const std::string name =
      std::filesystem::read_symlink("/proc/self/exe").filename();
  const std::string begin = text + " (" + name + ", process ";
  const std::size_t at = child.output.find(begin);
  if (at == std::string::npos) return false;
  const std::size_t digits = at + begin.size();
  const std::size_t end = child.output.find_first_not_of("0123456789", digits);
  return end != digits && end != std::string::npos &&
         child.output.compare(end, 2, ")\n") == 0;
}

bool ExitedWithZero(int wait_status) {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

std::size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string FirstLineWith(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

}  // namespace hakmem
