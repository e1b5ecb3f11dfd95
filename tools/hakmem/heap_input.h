// What `hakmem heap` reads: processes, core files, heap profiles, folders of
// them.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_INPUT_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_INPUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hakmem/heap_profile.h"

namespace hakmem::tools {

// "-" is standard input.
absl::StatusOr<HeapProfiles> ReadHeap(const std::string& name,
                                      HeapModules& modules);
// Says on standard error why it cannot.
void ComplainOfHeap(const std::string& name, std::string_view why);
// Appends all that can be read. False: not all can; that was said.
bool ReadHeaps(const std::vector<std::string>& names, HeapModules& modules,
               HeapProfiles& profiles);

// The file of a process's profile in a folder of `hakmem watch`.
std::string SnapshotPath(const std::string& folder, std::uint64_t pid,
                         std::uint64_t unix_ms);
// Those of one process in the folder, the oldest first. What else lies there is
// passed over.
std::vector<std::string> SnapshotsOf(const std::string& folder,
                                     std::uint64_t pid);

// Of these, the first one of the program that the last one is of: a process may
// execute another, or have the number of one that has ended.
std::string FirstOfNewestRun(const std::vector<std::string>& paths);

// Of each process in the folder the newest profile, and the newest of those
// that are older by `since`; 0, or none is: the first of its program. The error
// is a sentence.
struct SnapshotPairs {
  std::vector<std::string> before;
  std::vector<std::string> after;
};
absl::StatusOr<SnapshotPairs> PickSnapshots(const std::string& folder,
                                            absl::Duration since);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_INPUT_H_
