#include "allocator/stacks/own_stack.h"

#include <pthread.h>
#include <sys/auxv.h>

#include <cstring>

#include "allocator/base/sanitizer.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

struct FrameRecord {
  std::uintptr_t caller;
  std::uintptr_t return_address;
};

#if defined(__x86_64__)
// Sanitizers take reading another function's frame for an error.
constexpr bool kDirect = !kAddressSanitizer && !kThreadSanitizer;
#else
constexpr bool kDirect = false;
#endif

constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 20;
constexpr std::uintptr_t kLowestCode = 4096;
constexpr std::uintptr_t kPageBytes = 4096;
// In a larger stack too much would have to be looked at.
constexpr std::uintptr_t kMaxStackBytes = std::uintptr_t{64} << 20;

// Whether each page of [begin, end) can be read.
bool IsReadable(std::uintptr_t begin, std::uintptr_t end) {
  MemoryReader memory;
  for (std::uintptr_t at = begin; at < end; at += kPageBytes) {
    char byte = 0;
    if (!memory.Read(at, &byte, 1)) return false;
  }
  return true;
}

// Something that lies above all frames of this thread's stack: on the process's
// first stack what the kernel has put there, on others libc's descriptor of the
// thread. The first thread's descriptor lies among the libraries: between it
// and a coroutine's stack is what others have mapped, and may unmap.
std::uintptr_t TopAbove(std::uintptr_t frame) {
  const auto top = static_cast<std::uintptr_t>(
      ThreadId() == ProcessId() ? getauxval(AT_RANDOM) : pthread_self());
  return frame < top && top - frame < kMaxStackBytes ? top : 0;
}

// Makes [own.begin, own.end) hold `frame`.
bool Learn(std::uintptr_t frame, OwnStack& own) {
  const std::uintptr_t page = frame - frame % kPageBytes;
  if (own.end != 0) {
    // Deeper than ever; or another stack, as coroutines have.
    own.unknown = frame >= own.begin || own.end - frame > kMaxStackBytes ||
                  !IsReadable(page, own.begin);
    own.begin = own.unknown ? own.begin : page;
    return !own.unknown;
  }
  const std::uintptr_t top = TopAbove(frame);
  if (top == 0 || !IsReadable(page, top)) {
    own.unknown = true;
    return false;
  }
  own = {.begin = page, .end = top, .unknown = false};
  return true;
}

}  // namespace

bool IsOnOwnStack(std::uintptr_t frame, OwnStack& own) {
  const bool known = frame >= own.begin && frame < own.end;
  return kDirect && !own.unknown && (known || Learn(frame, own));
}

void CaptureOwnStack(const void* frame_address, OwnStack& own,
                     CallStack& stack) {
  auto frame = reinterpret_cast<std::uintptr_t>(frame_address);
  if (!IsOnOwnStack(frame, own)) return CaptureStack(frame_address, stack);
  stack.count = 0;
  for (;;) {
    FrameRecord record;
    std::memcpy(&record, reinterpret_cast<const void*>(frame), sizeof(record));
    if (record.return_address < kLowestCode) return;
    stack.addresses[stack.count++] = record.return_address;
    const std::uintptr_t next = record.caller;
    if (stack.count == CallStack::kMaxFrames || next <= frame ||
        next - frame > kMaxFrameBytes || next % alignof(FrameRecord) != 0 ||
        next > own.end - sizeof(FrameRecord)) {
      return;
    }
    frame = next;
  }
}

}  // namespace hakmem
