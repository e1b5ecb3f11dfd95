// The file format of call traces, as the library writes it and `hakmem trace`
// reads it: docs/trace_format.md, in constants.
//
// Owns: nothing. Called by: the call trace, the reader in tools/hakmem, tests.
// Thread-safety: constants and pure functions.
#ifndef HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_FORMAT_H_
#define HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace hakmem::call_trace {

inline constexpr std::uint64_t kFormatVersion = 1;

// --- Blocks -----------------------------------------------------------------
//   bytes 0–3    "HAKT"
//   byte  4      BlockType
//   bytes 5–7    zero
//   bytes 8–11   length of the payload, little endian
//   bytes 12–15  CRC-32 of bytes 0–11 and the payload, little endian
inline constexpr std::uint8_t kBlockMagic[4] = {'H', 'A', 'K', 'T'};
inline constexpr std::size_t kBlockHeaderBytes = 16;
inline constexpr std::size_t kChecksumOffset = 12;
inline constexpr std::size_t kMaxPayloadBytes = 80 * 1024;

enum class BlockType : std::uint8_t {
  kStart = 1,
  kThread = 2,
  kEvents = 3,
  kModules = 4,
  kEnd = 5,
};

inline constexpr std::uint64_t kStartHasStacks = 1;  // a flag of kStart

// --- Events -----------------------------------------------------------------
// A thread's events are one stream of bytes, in chunks. Each chunk can be
// decoded alone; no event crosses its end.
inline constexpr std::size_t kChunkBytes = std::size_t{64} * 1024;

// The low five bits of an event's first byte.
inline constexpr std::uint8_t kOperationMask = 0x1f;
inline constexpr std::uint8_t kEndOfChunk = 0;
inline constexpr std::uint8_t kFree = 1;
inline constexpr std::uint8_t kReallocFrom = 2;
inline constexpr std::uint8_t kFailure = 3;
// An allocation: kAllocate plus the number of the call, the position of its
// name in kStart's list.
inline constexpr std::uint8_t kAllocate = 4;
// The other three bits.
inline constexpr std::uint8_t kHasAlignment = 0x20;  // not the usual 16
inline constexpr std::uint8_t kLinked = 0x40;  // to the kReallocFrom before it
inline constexpr std::uint8_t kHasStack = 0x80;

inline constexpr unsigned kMaxFrames = 32;
inline constexpr std::size_t kMaxVarintBytes = 10;
// First byte, four varints and two bytes, then the stack.
inline constexpr std::size_t kMaxEventBytes =
    1 + 5 * kMaxVarintBytes + 8 + (2 + kMaxFrames) * kMaxVarintBytes;

// Addresses of blocks are stored without the four bits that are always zero.
inline constexpr unsigned kAddressShift = 4;

// The number of the event stream of threads that have none of their own.
inline constexpr std::uint64_t kSharedThread = 0;

// --- Numbers ----------------------------------------------------------------
// Seven bits a byte, low bits first; bit 7 says that more follow.
inline std::uint8_t* PutVarint(std::uint64_t value, std::uint8_t* out) {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

// Differences of either sign as small numbers: 0, −1, 1, −2, …
constexpr std::uint64_t ZigZag(std::uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
constexpr std::uint64_t UnZigZag(std::uint64_t value) {
  return (value >> 1) ^ (0 - (value & 1));
}

}  // namespace hakmem::call_trace

#endif  // HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_FORMAT_H_
