#include "allocator/stacks/own_stack.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/auxiliary_vector.h"
#include "allocator/platform/memory_reader.h"

// Where the first stack's first frame is, on glibc.
// NOLINTNEXTLINE(*-reserved-identifier,*-identifier-naming): libc's name.
extern "C" HAK_WEAK void* __libc_stack_end;

namespace hakmem {
namespace {

// So far below its end the kernel keeps other mappings from the first stack, if
// nobody asks for these addresses. Deeper ones are not looked at.
constexpr std::uintptr_t kMaxFirstStackBytes = std::uintptr_t{64} << 20;
// glibc's descriptor of a thread is longer.
constexpr std::size_t kSearchedBytes = 1792;

// Written by NoteStacks, always with the same values; read by all. 0: not
// known.
constinit std::atomic<std::uintptr_t> g_page_bytes{0};
constinit std::atomic<std::uintptr_t> g_first_end{0};
// Where in its descriptor a thread's stack is named: its begin, and behind that
// its bytes.
constinit std::atomic<std::size_t> g_record_at{0};
// The lowest page that is known to be the first stack's. Written and read by
// who runs on it.
constinit std::atomic<std::uintptr_t> g_first_begin{0};

bool IsGlibc() { return &__libc_stack_end != nullptr; }

std::uintptr_t DescriptorWord(std::size_t offset) {
  return LoadStackWord(reinterpret_cast<std::uintptr_t>(pthread_self()) +
                       offset);
}

// For the first thread, of which glibc says that its stack begins at 0 and has
// as many bytes as are below this end.
void FindRecord(std::uintptr_t end) {
  if (!IsGlibc() || g_record_at.load(std::memory_order_relaxed) != 0) return;
  for (std::size_t at = sizeof(end); at < kSearchedBytes; at += sizeof(end)) {
    if (DescriptorWord(at) == 0 && DescriptorWord(at + sizeof(end)) == end) {
      g_record_at.store(at, std::memory_order_relaxed);
      return;
    }
  }
}

// Whether [begin, end) and the page behind lie in one mapping. A part of one
// cannot grow where it is, which the kernel says by another error than when it
// is asked of several. Nothing is changed.
bool IsOneMapping(std::uintptr_t begin, std::uintptr_t end,
                  std::uintptr_t page_bytes) {
  const int error = ErrorOf(
      SystemCall(SYS_mremap, begin, end - begin, end - begin + page_bytes, 0));
  return error == ENOMEM || error == EAGAIN;
}

bool IsOnFirstStack(std::uintptr_t frame, std::uintptr_t end) {
  if (frame >= end || end - frame > kMaxFirstStackBytes) return false;
  const std::uintptr_t known = g_first_begin.load(std::memory_order_relaxed);
  if (frame >= known) return true;
  const std::uintptr_t page_bytes =
      g_page_bytes.load(std::memory_order_relaxed);
  const std::uintptr_t page = frame - frame % page_bytes;
  if (!IsOneMapping(page, end - end % page_bytes, page_bytes)) return false;
  g_first_begin.store(page, std::memory_order_relaxed);
  return true;
}

// The end of the stack that the thread's descriptor names, which lies on it; 0:
// the frame does not.
std::uintptr_t NamedEnd(std::uintptr_t frame) {
  const std::size_t at = g_record_at.load(std::memory_order_relaxed);
  if (at == 0) return 0;
  const std::uintptr_t begin = DescriptorWord(at);
  const std::uintptr_t bytes = DescriptorWord(at + sizeof(begin));
  const auto self = reinterpret_cast<std::uintptr_t>(pthread_self());
  return begin != 0 && frame - begin < bytes && self - begin < bytes
             ? begin + bytes
             : 0;
}

}  // namespace

void NoteStacks() {
  // Without libc's word something that the kernel has put above all frames.
  const std::uintptr_t end =
      IsGlibc() ? reinterpret_cast<std::uintptr_t>(__libc_stack_end)
                : AuxiliaryValue(AT_RANDOM);
  FindRecord(end);
  if (g_first_end.load(std::memory_order_relaxed) != 0) return;
  const std::uintptr_t page_bytes = KernelPageBytes();
  g_page_bytes.store(page_bytes, std::memory_order_relaxed);
  g_first_begin.store(end - end % page_bytes, std::memory_order_relaxed);
  // release: pairs with the acquire in KnownStackAt: who sees the end sees the
  // rest.
  g_first_end.store(end, std::memory_order_release);
}

KnownStack KnownStackAt(std::uintptr_t frame) {
  const std::uintptr_t begin = frame - frame % kSmallestPageBytes;
  // acquire: pairs with the release in NoteStacks.
  std::uintptr_t first_end = g_first_end.load(std::memory_order_acquire);
  if (first_end == 0) {
    // Libraries' constructors run before this one's.
    NoteStacks();
    first_end = g_first_end.load(std::memory_order_relaxed);
  }
  const std::uintptr_t end = NamedEnd(frame);
  if (end != 0) return {begin, end};
  if (IsOnFirstStack(frame, first_end)) {
    FindRecord(first_end);
    return {begin, first_end};
  }
  const std::uintptr_t last = frame + sizeof(FrameRecord) - 1;
  return {begin, last - last % kSmallestPageBytes + kSmallestPageBytes};
}

}  // namespace hakmem
