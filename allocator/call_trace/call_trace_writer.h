// The blocks of a call trace's file.
//
// Owns: the file. Called by: CallTrace, under its drain lock.
// Thread-safety: the caller serialises. Nothing allocates.
//
// Invariants:
//   CW1: each block goes out by one write, and its checksum covers it.
#ifndef HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_WRITER_H_
#define HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "allocator/call_trace/call_trace_format.h"
#include "allocator/call_trace/call_trace_ring.h"
#include "allocator/process/trace_file.h"

namespace hakmem {

// The process and the product, as the file describes them.
struct CallTraceFacts {
  const char* program = "";
  const char* version = "";
  const char* variant = "";
  // How sizes become blocks.
  std::uint32_t (*class_bytes)(unsigned index) = nullptr;
  unsigned class_count = 0;
  std::uint64_t max_tiny_bytes = 0;
  std::uint64_t max_pool_bytes = 0;
  std::uint64_t max_span_bytes = 0;
  std::uint64_t unit_bytes = 0;
  std::uint64_t page_bytes = 0;
};

struct CallTraceStart {
  int process_id = 0;
  std::uint64_t monotonic_ns = 0;  // what events' times count from
  std::uint64_t wall_clock_ns = 0;
  std::uint64_t sample = 1;
  bool stacks = false;
};

struct CallTraceTotals {
  std::uint64_t calls = 0;
  std::uint64_t recorded = 0;
  std::uint64_t dropped = 0;
};

class CallTraceWriter {
 public:
  // The buffer in which a block is put together.
  static constexpr std::size_t kBufferBytes =
      call_trace::kBlockHeaderBytes + call_trace::kMaxPayloadBytes;

  constexpr CallTraceWriter() = default;
  CallTraceWriter(const CallTraceWriter&) = delete;
  CallTraceWriter& operator=(const CallTraceWriter&) = delete;

  // `buffer` has kBufferBytes. Returns 0 or the errno (TraceFile::Open).
  int Open(const char* path, std::uint8_t* buffer);
  bool is_open() const { return file_.is_open(); }
  void Close() { file_.Close(); }

  // The errno of the first block that could not be written; no other is
  // written after it.
  int error() const { return error_; }

  void WriteStart(const CallTraceStart& start, const CallTraceFacts& facts);
  void WriteThread(const TraceRing& ring, std::string_view name);
  void WriteEvents(const TraceRing& ring, const TraceRing::Piece& piece);
  // The mappings that have code, unless they are as the file has them already.
  void WriteModules();
  // `signal` is 0 at a regular end.
  void WriteEnd(const CallTraceTotals& totals, std::uint64_t time_ns,
                int signal);

 private:
  void Begin(call_trace::BlockType type);
  void Number(std::uint64_t value);
  void Bytes(std::span<const std::uint8_t> bytes);
  void Text(std::string_view text);
  // A line of /proc/self/maps, if it is of a file's code.
  void ModuleLine(std::string_view line);
  void End();

  TraceFile file_;
  std::uint8_t* buffer_ = nullptr;
  std::uint8_t* at_ = nullptr;
  std::uint32_t modules_checksum_ = 0;
  int error_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_WRITER_H_
