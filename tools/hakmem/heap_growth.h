// hakmem heap --diff and --for: what has grown.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_GROWTH_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_GROWTH_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/heap_profile.h"

namespace hakmem::tools {

// All print, and write what their flags ask for. True: all could be read and
// written.
bool ShowHeapDiff(const std::string& before, const std::string& after,
                  HeapKind by, const FramePolicy& policy);
// Of a folder of `hakmem watch`.
bool ShowFolderGrowth(const std::string& folder, absl::Duration since,
                      HeapKind by, const FramePolicy& policy);
// From now on, until the time is over or somebody presses Ctrl-C.
bool ShowGrowthOf(const std::vector<std::string>& pids, absl::Duration time,
                  HeapKind by, const FramePolicy& policy);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_GROWTH_H_
