// The file format of allocation traces: what a program asked of malloc, in one
// order that is right for every thread and every block.
//
//   bytes 0–7    "HAKTRACE"
//   bytes 8–15   checksum of all that follows: FNV-1a, 64 bits, little endian
//   varints      version (1), number of threads, number of blocks, number of
//                events; then the events, and nothing after them
//
// A varint has 7 bits in each byte, low bits first; bit 7 says that more
// follow. An event is a byte (bits 0–2: the Op; bit 3: another thread than the
// event before, which the first is not when it is thread 0's), then varints:
// the thread if bit 3 is set, the block, the size unless it is kFree, log2 of
// the alignment if it is kAllocateAligned. Numbers of blocks are used again.
//
// Owns: nothing; a Reader refers to the caller's bytes. Called by: the
// replayer, the converter, their tests. Thread-safety: none needed.
// Invariants:
//   T1: a Reader never reads outside of its bytes, whatever they are.
//   T2: an event it gives has a thread, a block and a size within the header's
//       bounds and kMaxSize. Whether the block is alive is the caller's.
//   T3: a Reader doesn't allocate.
#ifndef HAKMEM_BENCHMARKS_TRACES_TRACE_FORMAT_H_
#define HAKMEM_BENCHMARKS_TRACES_TRACE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hakmem::traces {

inline constexpr std::string_view kMagic = "HAKTRACE";
inline constexpr std::size_t kChecksumBegin = 8;
inline constexpr std::size_t kChecksummedBegin = 16;
inline constexpr std::uint64_t kVersion = 1;

// Bounds that no honest trace comes near, so that a damaged one is refused.
inline constexpr std::uint64_t kMaxThreads = 4096;
inline constexpr std::uint64_t kMaxBlocksPerEvent = 8;
inline constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kMaxAlignmentLog2 = 30;

enum class Op : std::uint8_t {
  kAllocate = 0,
  kAllocateZeroed = 1,
  kAllocateAligned = 2,
  kReallocate = 3,  // of a living block, which keeps its number
  kFree = 4,
};

struct Event {
  Op op = Op::kAllocate;
  std::uint8_t alignment_log2 = 0;  // of kAllocateAligned
  std::uint32_t thread = 0;
  std::uint32_t block = 0;
  std::uint64_t size = 0;  // not of kFree

  bool operator==(const Event&) const = default;
};

struct Header {
  std::uint32_t threads = 0;
  std::uint32_t blocks = 0;
  std::uint64_t events = 0;

  bool operator==(const Header&) const = default;
};

std::uint64_t Checksum(std::span<const std::uint8_t> bytes);

class Reader {
 public:
  // Checks the magic, the checksum and the header.
  explicit Reader(std::span<const std::uint8_t> bytes);

  const Header& header() const { return header_; }

  // What is wrong with the trace, or null as far as it has been read.
  const char* error() const { return error_; }

  // The next event; false after the last one, or if there is an error.
  bool Next(Event& event);

 private:
  bool Fail(const char* error);
  void ReadHeader();
  bool ReadVarint(std::uint64_t& value);
  bool ReadBelow(std::uint64_t bound, std::uint64_t& value);
  bool ReadEvent(Event& event);

  std::span<const std::uint8_t> rest_;
  Header header_;
  std::uint64_t events_read_ = 0;
  std::uint32_t thread_ = 0;
  const char* error_ = nullptr;
};

class Writer {
 public:
  void Add(const Event& event);

  std::uint64_t events() const { return header_.events; }

  // The finished file; its header counts what was added.
  std::string Finish() const;

 private:
  Header header_;
  std::uint32_t thread_ = 0;
  std::string body_;
};

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_TRACE_FORMAT_H_
