// Calls of the allocator whose outcome is kept for the report.
//
// Nothing here allocates by itself, so that the calls which a case makes are
// the only ones that can fail while a limit is in force.
#ifndef HAKMEM_TOOLS_PROVOKE_ATTEMPT_H_
#define HAKMEM_TOOLS_PROVOKE_ATTEMPT_H_

#include <cstddef>
#include <cstdint>

namespace hakmem::provoke {

// The entry points that can fail for want of memory.
enum class Call : std::uint8_t {
  kMalloc,
  kCalloc,
  kRealloc,
  kReallocArray,
  kAlignedAlloc,
  kMemalign,
  kPosixMemalign,
  kValloc,
  kPvalloc,
  kNew,
  kNewArray,
  kNewNothrow,
  kNewArrayNothrow,
  kNewAligned,
  kNewArrayAligned,
  kNewAlignedNothrow,
  kNewArrayAlignedNothrow,
};
inline constexpr unsigned kCalls = 17;

// "malloc", "operator new[]" …; with an std::align_val_t or without.
const char* CallName(Call call);

struct Request {
  Call call = Call::kMalloc;
  std::size_t size = 0;  // of one element, for calls that take a count
  std::size_t alignment = 16;
  std::size_t count = 1;
  void* block = nullptr;  // of realloc and reallocarray
};

enum class Result : std::uint8_t { kServed, kNull, kThrew, kError };
const char* ResultName(Result result);  // "served", "null" …

struct Outcome {
  Request request;
  Result result = Result::kServed;
  int error_number = 0;  // errno, or what posix_memalign returned
};

// What the calls of this process came to. A case that forks has the child's
// log too: it lies in shared memory.
struct Log {
  static constexpr std::size_t kKept = 64;
  std::uint64_t served;
  std::uint64_t failed;
  Outcome failures[kKept];  // the first ones
};
Log& TheLog();

// Makes the call and logs it; null when it failed.
void* Try(const Request& request);

// As many blocks as there are until a call fails, or `most_bytes` in all.
class Pile {
 public:
  Pile() = default;
  Pile(const Pile&) = delete;
  Pile& operator=(const Pile&) = delete;
  ~Pile() { Free(); }

  // Returns whether a call failed. `touch` writes to every page.
  bool Fill(const Request& request, std::size_t most_bytes, bool touch = false);
  void Free();

 private:
  // Each block holds the address of the one before it.
  void* newest_ = nullptr;
};

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_ATTEMPT_H_
