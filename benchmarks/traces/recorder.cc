// A library to be preloaded into any program: it writes a RawRecord for each
// call of malloc's family and passes the call on to the next allocator.
// HAKMEM_RECORD names the file, with %p for the process; record.sh sets it.
//
// One lock orders the records. An allocation is recorded after it has
// happened, a free before it happens, and realloc holds the lock meanwhile, so
// no other thread can record the block's next owner too early (R1 in
// raw_record.h). Nothing here frees or allocates by way of the program.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "benchmarks/traces/raw_record.h"

namespace {

using hakmem::traces::Call;
using hakmem::traces::RawRecord;

// 1 GiB of records; what is not written takes no room on a disk.
constexpr std::size_t kMaxRecords = std::size_t{1} << 25;
constexpr std::size_t kMaxPath = 4096;

struct NextAllocator {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void (*free)(void*);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
};

constinit NextAllocator next = {};
constinit bool resolving = false;
constinit bool resolved = false;

// What the loader asks for while it looks for the next allocator.
alignas(16) constinit char early[16384] = {};
constinit std::size_t early_used = 0;

constinit std::atomic<std::uint32_t> threads = 0;
constinit thread_local std::uint32_t own_number = 0;  // 0: none yet

// Guarded by `lock`.
constinit std::atomic<bool> lock = false;
constinit RawRecord* records = nullptr;
constinit std::size_t used = 0;
constinit bool closed = false;
constinit char path_template[kMaxPath] = {};

void Lock() {
  // acquire: pairs with the release in Unlock.
  while (lock.exchange(true, std::memory_order_acquire)) sched_yield();
}

// release: with the acquire in Lock, who is next sees what was written.
void Unlock() { lock.store(false, std::memory_order_release); }

void Say(const char* text) {
  // There is nobody to tell if this fails.
  const auto written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

[[noreturn]] void Die(const char* text) {
  Say(text);
  _exit(2);
}

template <typename Function>
void Find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  if (function == nullptr) Die("recorder: no allocator comes next\n");
}

void Resolve() {
  if (resolved) return;
  resolving = true;
  Find("malloc", next.malloc);
  Find("calloc", next.calloc);
  Find("realloc", next.realloc);
  Find("free", next.free);
  Find("posix_memalign", next.posix_memalign);
  Find("aligned_alloc", next.aligned_alloc);
  Find("memalign", next.memalign);
  resolving = false;
  resolved = true;
}

void* EarlyAllocate(std::size_t size) {
  const std::size_t rounded = (size + 15) & ~std::size_t{15};
  if (rounded > sizeof(early) - early_used) {
    Die("recorder: the loader wants more memory than there is\n");
  }
  void* const block = early + early_used;
  early_used += rounded;
  return block;
}

bool IsEarly(const void* block) {
  const auto* const address = static_cast<const char*>(block);
  return address >= early && address < early + sizeof(early);
}

// The template with the process's number for %p.
void MakePath(char (&path)[kMaxPath]) {
  char digits[16];
  std::size_t count = 0;
  for (auto rest = static_cast<unsigned>(getpid()); rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  std::size_t at = 0;
  for (const char* from = path_template; *from != '\0'; ++from) {
    if (at + sizeof(digits) >= kMaxPath) Die("recorder: path too long\n");
    if (from[0] == '%' && from[1] == 'p') {
      for (std::size_t i = count; i > 0; --i) path[at++] = digits[i - 1];
      ++from;
    } else {
      path[at++] = *from;
    }
  }
  path[at] = '\0';
}

// Maps the process's file. The whole file: then no record is lost however the
// process ends, and no descriptor stays open that the program might close.
void OpenFile() {
  closed = true;
  if (path_template[0] == '\0') {
    const char* const wanted = getenv("HAKMEM_RECORD");
    if (wanted == nullptr || std::strlen(wanted) >= kMaxPath) {
      Die("recorder: HAKMEM_RECORD must name the file\n");
    }
    std::strcpy(path_template, wanted);
  }
  char path[kMaxPath];
  MakePath(path);
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  constexpr std::size_t kBytes = kMaxRecords * sizeof(RawRecord);
  void* mapped = MAP_FAILED;
  if (file >= 0 && ftruncate(file, kBytes) == 0) {
    mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (mapped == MAP_FAILED) {
    Say("recorder: this process is not recorded, its file cannot be made\n");
    return;
  }
  records = static_cast<RawRecord*>(mapped);
  used = 0;
  closed = false;
}

void RecordLocked(Call call, const void* block, std::uint64_t argument,
                  std::size_t size) {
  if (records == nullptr && !closed) {
    const int saved = errno;
    OpenFile();
    errno = saved;
  }
  if (closed || used == kMaxRecords) return;
  if (own_number == 0) {
    own_number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  records[used++] = {.address = reinterpret_cast<std::uintptr_t>(block),
                     .argument = argument,
                     .size = size,
                     .thread = own_number - 1,
                     .call = call};
}

void* Record(Call call, void* block, std::uint64_t argument, std::size_t size) {
  if (block == nullptr) return nullptr;
  Lock();
  RecordLocked(call, block, argument, size);
  Unlock();
  return block;
}

// A child goes on with a file of its own.
void ChildAfterFork() {
  if (records != nullptr) munmap(records, kMaxRecords * sizeof(RawRecord));
  records = nullptr;
  closed = false;
  Unlock();
}

[[gnu::constructor]] void WatchForks() {
  pthread_atfork(Lock, Unlock, ChildAfterFork);
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void* malloc(std::size_t size) {
  if (resolving) return EarlyAllocate(size);
  Resolve();
  return Record(Call::kMalloc, next.malloc(size), 0, size);
}

[[gnu::visibility("default")]] void* calloc(std::size_t count,
                                            std::size_t size) {
  // Never used before, so still zero.
  if (resolving) return EarlyAllocate(count * size);
  Resolve();
  return Record(Call::kCalloc, next.calloc(count, size), 0, count * size);
}

[[gnu::visibility("default")]] void free(void* block) {
  if (block == nullptr || IsEarly(block)) return;
  Resolve();
  Record(Call::kFree, block, 0, 0);
  next.free(block);
}

[[gnu::visibility("default")]] void* realloc(void* block, std::size_t size) {
  if (block == nullptr) return malloc(size);
  if (IsEarly(block)) {
    void* const moved = malloc(size);
    const std::size_t after = static_cast<std::size_t>(
        early + sizeof(early) - static_cast<char*>(block));
    if (moved != nullptr)
      std::memcpy(moved, block, size < after ? size : after);
    return moved;
  }
  Resolve();
  Lock();
  void* const moved = next.realloc(block, size);
  if (moved != nullptr || size == 0) {
    RecordLocked(Call::kRealloc, moved, reinterpret_cast<std::uintptr_t>(block),
                 size);
  }
  Unlock();
  return moved;
}

[[gnu::visibility("default")]] void* reallocarray(void* block,
                                                  std::size_t count,
                                                  std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(block, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** block,
                                                  std::size_t alignment,
                                                  std::size_t size) {
  Resolve();
  const int error = next.posix_memalign(block, alignment, size);
  if (error == 0) Record(Call::kAligned, *block, alignment, size);
  return error;
}

[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment,
                                                   std::size_t size) {
  Resolve();
  return Record(Call::kAligned, next.aligned_alloc(alignment, size), alignment,
                size);
}

[[gnu::visibility("default")]] void* memalign(std::size_t alignment,
                                              std::size_t size) {
  Resolve();
  return Record(Call::kAligned, next.memalign(alignment, size), alignment,
                size);
}

[[gnu::visibility("default")]] void* valloc(std::size_t size) {
  return memalign(static_cast<std::size_t>(getpagesize()), size);
}

}  // extern "C"
