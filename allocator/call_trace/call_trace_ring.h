// The events of one thread on their way to the trace's file: a ring of bytes
// with one producer, the thread, and one consumer, whoever drains.
//
// Owns: its bytes. Called by: CallTrace. Thread-safety: Record and Count by the
// producer, Peek and Consume by the consumer (CallTrace's drain lock);
// lock-free on both sides. Starts as zeroed memory.
//
// Invariants:
//   Q1: tail <= head <= tail + kBytes; both only grow.
//   Q2: what lies between tail and head is whole events.
//   Q3: recorded() events have been in the bytes.
#ifndef HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_RING_H_
#define HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/call_trace/call_trace_encoder.h"
#include "allocator/call_trace/call_trace_format.h"

namespace hakmem {

class TraceRing {
 public:
  static constexpr std::size_t kChunks = 8;
  static constexpr std::size_t kBytes = kChunks * call_trace::kChunkBytes;

  enum class State : std::uint8_t {
    kFree,     // nobody's; as it was when its last thread's events were drained
    kActive,   // a thread's
    kClosing,  // its thread is gone; to be drained for the last time
  };

  // --- Producer ---
  // Before it becomes active: empty, and all counts zero.
  void Reset();
  enum class Result : std::uint8_t { kFull, kRecorded, kStartedChunk };
  // Appends the event, if there is room. With a new chunk begun, the consumer
  // has work.
  Result Record(const TraceEvent& event);
  // An event is given up.
  void Drop() { Add(dropped_); }
  // A call was made, sampled or not.
  void Count() { Add(calls_); }

  // --- Consumer ---
  struct Piece {
    const std::uint8_t* bytes;
    std::size_t length;
    std::uint64_t chunk;
    std::uint64_t offset;  // in the chunk
  };
  // The oldest bytes that are there, within one chunk; false: none.
  bool Peek(Piece& piece) const;
  void Consume(const Piece& piece);

  // --- Either ---
  std::uint64_t calls() const { return Load(calls_); }
  std::uint64_t recorded() const { return Load(recorded_); }
  std::uint64_t dropped() const { return Load(dropped_); }

  // Free to active: by a thread under CallTrace's attach lock. Active to
  // closing: by the thread. Closing to free: by the consumer.
  std::atomic<State> state;
  // Written before the state becomes active; read by the consumer.
  std::uint64_t thread_number;
  int thread_id;
  // Written by the thread before the state becomes closing.
  char name[16];
  // The consumer's: whether the file knows the thread.
  bool announced;

 private:
  // Only one thread writes the counters.
  static void Add(std::atomic<std::uint64_t>& counter) {
    counter.store(Load(counter) + 1, std::memory_order_relaxed);
  }
  static std::uint64_t Load(const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  }
  bool HasRoom(std::uint64_t begin);

  // Written by the producer, read by the consumer.
  alignas(64) std::atomic<std::uint64_t> head_;
  std::atomic<std::uint64_t> calls_;
  std::atomic<std::uint64_t> recorded_;
  std::atomic<std::uint64_t> dropped_;
  // The producer's: the tail when it last looked.
  std::uint64_t tail_seen_;
  // Written by the consumer, read by the producer.
  alignas(64) std::atomic<std::uint64_t> tail_;
  // The producer's.
  alignas(64) TraceEncoder encoder_;
  std::uint8_t bytes_[kBytes];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_RING_H_
