#include "allocator/platform/auxiliary_vector.h"

#include <sys/auxv.h>

#include <atomic>
#include <bit>

#include "allocator/platform/errno_guard.h"

#if defined(__GLIBC__)
// Exported by the loader, in no header: where the kernel put the count of the
// arguments, and behind it these, null, and the environment.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::weak]] void* __libc_stack_end;
#endif

namespace hakmem {
namespace {

// Pairs of a type and a value. The kernel gives some 20.
constexpr unsigned kMaxEntries = 64;
struct Entry {
  unsigned long type;
  unsigned long value;
};

// Written by whoever asks first, with the same value by all. A program may
// change its environment later.
constinit std::atomic<const Entry*> g_entries{nullptr};
constinit std::atomic<std::size_t> g_page_bytes{0};

const unsigned long* Start() {
#if defined(__GLIBC__)
  // More than the kernel takes.
  constexpr unsigned long kMaxArguments = 1UL << 22U;
  if (&__libc_stack_end != nullptr) {
    const auto* const start =
        static_cast<const unsigned long*>(__libc_stack_end);
    // In a program without a dynamic linker it is a word of libc's own.
    if (start[0] < kMaxArguments && start[1 + start[0]] == 0) return start;
  }
#endif
  return nullptr;
}

unsigned long Find(const Entry* entries, unsigned long type) {
  for (unsigned i = 0; i < kMaxEntries && entries[i].type != AT_NULL; ++i) {
    if (entries[i].type == type) return entries[i].value;
  }
  return 0;
}

// Null: not as the kernel has left it. A variable that was taken out of the
// environment leaves one more null behind it.
const Entry* FindEntries(const unsigned long* start) {
  if (start == nullptr) return nullptr;
  const unsigned long* word = start + 1 + start[0] + 1;
  while (*word != 0) ++word;
  while (*word == 0) ++word;
  const auto* const entries = reinterpret_cast<const Entry*>(word);
  const bool is_whole = std::has_single_bit(Find(entries, AT_PAGESZ)) &&
                        Find(entries, AT_RANDOM) != 0;
  return is_whole ? entries : nullptr;
}

unsigned long AskLibc(unsigned long type) {
  const ErrnoGuard guard;
  return getauxval(type);
}

}  // namespace

unsigned long AuxiliaryValueAt(const unsigned long* start, unsigned long type) {
  const Entry* const entries = FindEntries(start);
  return entries == nullptr ? AskLibc(type) : Find(entries, type);
}

unsigned long AuxiliaryValue(unsigned long type) {
  const Entry* entries = g_entries.load(std::memory_order_relaxed);
  if (entries == nullptr) {
    entries = FindEntries(Start());
    if (entries == nullptr) return AskLibc(type);
    g_entries.store(entries, std::memory_order_relaxed);
  }
  return Find(entries, type);
}

char** FirstEnvironment() {
  const unsigned long* const start = Start();
  if (start == nullptr) return nullptr;
  return reinterpret_cast<char**>(
      const_cast<unsigned long*>(start + 1 + start[0] + 1));
}

std::size_t KernelPageBytes() {
  std::size_t bytes = g_page_bytes.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = AuxiliaryValue(AT_PAGESZ);
    g_page_bytes.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace hakmem
