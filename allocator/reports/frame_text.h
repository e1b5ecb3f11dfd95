// Call stacks as text, for reports.
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread; nothing
// allocates; errno is left as it was.
#ifndef HAKMEM_ALLOCATOR_REPORTS_FRAME_TEXT_H_
#define HAKMEM_ALLOCATOR_REPORTS_FRAME_TEXT_H_

#include <cstdint>
#include <span>

#include "allocator/base/json_text.h"

namespace hakmem {

// One line for each frame, innermost first:
//   "    #0 0x401234 main+0x1f (/bin/prog+0x1234) (BuildId: 0123…)"
// as far as it is known.
void WriteFrames(int fd, std::span<const std::uintptr_t> frames);

// [{"address":"0x401234","module":"/bin/prog","offset":"0x1234",
//   "function":"main"},…], as far as it is known.
void AddFramesJson(std::span<const std::uintptr_t> frames, JsonText& out);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_FRAME_TEXT_H_
