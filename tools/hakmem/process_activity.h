// Whether the threads of a process sleep.
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_ACTIVITY_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_ACTIVITY_H_

#include <cstdint>

namespace hakmem::tools {

struct ProcessActivity {
  std::uint64_t threads = 0;   // 0: the kernel does not tell
  std::uint64_t running = 0;   // of them, at the moment
  std::uint64_t switches = 0;  // how often a thread has stopped to run
};

ProcessActivity ReadActivity(std::uint64_t pid);

// Whether no thread has run since `before`.
bool HasSlept(const ProcessActivity& before, const ProcessActivity& now);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_ACTIVITY_H_
