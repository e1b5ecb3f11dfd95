// The flags of `hakmem heap` about the frames that it shows.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_POLICY_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_POLICY_H_

#include "absl/status/statusor.h"
#include "tools/hakmem/frame_policy.h"

namespace hakmem::tools {

// What the command line asks for. The error is a sentence.
absl::StatusOr<FramePolicy> AskedPolicy();

// Whether it asks for anything.
bool AsksForFrames();

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_POLICY_H_
