#include "allocator/stacks/call_stack.h"

#include <cstddef>

#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/symbols.h"

namespace hakmem {

namespace {

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kFrameRecords = true;
#else
constexpr bool kFrameRecords = false;
#endif

// A larger step is a register that holds something else than a frame pointer.
constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 20;

// Nothing is mapped in the first page.
constexpr std::uintptr_t kLowestCode = 4096;

// Removes the signature that aarch64 may keep in a return address.
std::uintptr_t WithoutSignature(std::uintptr_t address) {
#if defined(__aarch64__)
  // XPACLRI, a no-operation where there are no signatures.
  register std::uintptr_t link __asm__("x30") = address;
  __asm__("hint #7" : "+r"(link));
  return link;
#else
  return address;
#endif
}

// Goes up from the record at `frame`, as far as `read` can read.
template <typename Read>
void Walk(std::uintptr_t frame, const Read& read, CallStack& stack) {
  FrameRecord record;
  if (frame % alignof(FrameRecord) != 0 || !read(frame, record)) return;
  while (record.return_address >= kLowestCode) {
    stack.addresses[stack.count++] = WithoutSignature(record.return_address);
    if (stack.count == CallStack::kMaxFrames) return;
    const std::uintptr_t next = record.caller;
    if (next <= frame || next - frame > kMaxFrameBytes) return;
    if (next % alignof(FrameRecord) != 0) return;
    if (!read(next, record)) return;
    frame = next;
  }
}

// The caller of a function that has made no frame of its own; 0: it seems to
// have made one.
std::uintptr_t FramelessCaller(const CodePlace& place) {
  std::uintptr_t caller = WithoutSignature(place.link);
  MemoryReader memory;
  if (place.link == 0 &&
      !memory.Read(place.stack_pointer, &caller, sizeof(caller))) {
    return 0;
  }
  ModuleOf here;
  ModuleOf there;
  if (!FindModule(place.instruction, here) || !FindModule(caller, there)) {
    return 0;
  }
  if (here.begin != there.begin) return caller;
  // A register of its own tells of another function until the first call.
  Symbol own;
  Symbol other;
  const bool is_apart =
      place.link != 0 && FindSymbol(here, place.instruction, own) &&
      FindSymbol(there, caller - 1, other) &&
      place.instruction - own.offset != caller - 1 - other.offset;
  return is_apart ? caller : 0;
}

}  // namespace

void CaptureStack(const void* frame_address, CallStack& stack) {
  stack.count = 0;
  if constexpr (!kFrameRecords) return;
  const auto frame = reinterpret_cast<std::uintptr_t>(frame_address);
  const KnownStack known = KnownStackAt(frame);
  const auto read = [&](std::uintptr_t address, FrameRecord& record) {
    constexpr std::size_t kSecond = offsetof(FrameRecord, return_address);
    if (!known.Holds(address) || !known.Holds(address + kSecond)) return false;
    record.caller = LoadStackWord(address);
    record.return_address = LoadStackWord(address + kSecond);
    return true;
  };
  Walk(frame, read, stack);
}

void CaptureStackAt(const CodePlace& place, CallStack& stack) {
  stack.count = 0;
  if (place.instruction == 0) return;
  stack.addresses[stack.count++] = place.instruction;
  if constexpr (!kFrameRecords) return;
  MemoryReader memory;
  const auto read = [&](std::uintptr_t address, FrameRecord& record) {
    return memory.Read(address, &record, sizeof(record));
  };
  const std::uintptr_t caller = FramelessCaller(place);
  FrameRecord record = {};
  const bool is_new = !read(place.frame, record) ||
                      WithoutSignature(record.return_address) != caller;
  if (caller != 0 && is_new) stack.addresses[stack.count++] = caller;
  Walk(place.frame, read, stack);
}

}  // namespace hakmem
