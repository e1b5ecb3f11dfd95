#include "allocator/call_trace/call_trace_ring.h"

#include <algorithm>

namespace hakmem {

using call_trace::kChunkBytes;

void TraceRing::Reset() {
  head_.store(0, std::memory_order_relaxed);
  tail_.store(0, std::memory_order_relaxed);
  tail_seen_ = 0;
  calls_.store(0, std::memory_order_relaxed);
  recorded_.store(0, std::memory_order_relaxed);
  dropped_.store(0, std::memory_order_relaxed);
  announced = false;
  name[0] = '\0';
}

// For one event at `begin`.
bool TraceRing::HasRoom(std::uint64_t begin) {
  const auto fits = [&] {
    return begin + call_trace::kMaxEventBytes - tail_seen_ <= kBytes;
  };
  if (fits()) return true;
  // acquire: pairs with the release in Consume; what was there has been read.
  tail_seen_ = tail_.load(std::memory_order_acquire);
  return fits();
}

TraceRing::Result TraceRing::Record(const TraceEvent& event) {
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t in_chunk = head % kChunkBytes;
  const bool pad = kChunkBytes - in_chunk < call_trace::kMaxEventBytes;
  const std::uint64_t begin = pad ? head - in_chunk + kChunkBytes : head;
  if (!HasRoom(begin)) return Result::kFull;
  if (pad) bytes_[head % kBytes] = call_trace::kEndOfChunk;
  const bool starts_chunk = begin % kChunkBytes == 0;
  if (starts_chunk) encoder_.StartChunk();
  std::uint8_t* const at = bytes_ + begin % kBytes;
  const std::uint8_t* const end = encoder_.Encode(event, at);
  Add(recorded_);
  // release: pairs with the acquire in Peek, which reads the bytes.
  head_.store(begin + static_cast<std::uint64_t>(end - at),
              std::memory_order_release);
  return starts_chunk ? Result::kStartedChunk : Result::kRecorded;
}

bool TraceRing::Peek(Piece& piece) const {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  // acquire: pairs with the release in Record.
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  if (tail == head) return false;
  const std::uint64_t offset = tail % kChunkBytes;
  piece = {.bytes = bytes_ + tail % kBytes,
           .length = static_cast<std::size_t>(
               std::min(head - tail, kChunkBytes - offset)),
           .chunk = tail / kChunkBytes,
           .offset = offset};
  return true;
}

void TraceRing::Consume(const Piece& piece) {
  // release: pairs with the acquire in HasRoom; the bytes may be overwritten.
  tail_.store(tail_.load(std::memory_order_relaxed) + piece.length,
              std::memory_order_release);
}

}  // namespace hakmem
