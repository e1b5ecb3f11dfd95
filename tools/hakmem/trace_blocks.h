// The blocks of a call trace's file (docs/trace_format.md), with what of it
// can't be used.
//
// A damaged or truncated file is read as far as it goes: what is skipped is
// counted and named, and the rest is used.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_BLOCKS_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

// What the trace says of the process, and how it numbers things.
struct TraceFacts {
  std::uint64_t process_id = 0;
  std::uint64_t monotonic_ns = 0;   // what the events' times count from
  std::uint64_t wall_clock_ns = 0;  // the same moment, since 1970
  std::uint64_t sample = 1;         // one in so many addresses
  bool has_stacks = false;
  std::string program;
  std::string version;
  std::string variant;
  // How sizes become blocks.
  std::uint64_t max_tiny_bytes = 0;
  std::uint64_t max_pool_bytes = 0;
  std::uint64_t max_span_bytes = 0;
  std::uint64_t unit_bytes = 1;
  std::uint64_t page_bytes = 1;
  std::vector<std::uint32_t> class_bytes;
  // Names by number.
  std::vector<std::string> calls;
  std::vector<std::string> reasons;
  std::vector<std::string> details;
  std::vector<std::string> dispositions;
};

// The name of a number that the trace may not explain.
std::string NameOf(const std::vector<std::string>& names, std::size_t number);

struct TraceThreadFacts {
  std::uint64_t thread_id = 0;
  std::string name;
  // As the thread's last block says.
  std::uint64_t calls = 0;
  std::uint64_t recorded = 0;
  std::uint64_t dropped = 0;
};

// Part of a thread's stream of events.
struct TracePiece {
  std::uint64_t chunk = 0;
  std::uint64_t offset = 0;  // in the chunk
  std::span<const std::uint8_t> bytes;
};

// A mapping that has code.
struct TraceModule {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t base = 0;  // an address less this is the ELF file's
  std::string build_id;
  std::string path;
};

struct TraceEnd {
  std::uint64_t time_ns = 0;
  std::uint64_t calls = 0;
  std::uint64_t recorded = 0;
  std::uint64_t dropped = 0;
  std::uint64_t signal = 0;
};

// What could not be used, and why.
class TraceDamage {
 public:
  static constexpr std::size_t kMaxNotes = 20;

  // `bytes` could not be used.
  void Add(std::uint64_t bytes, std::string note);

  std::uint64_t places() const { return places_; }
  std::uint64_t bytes() const { return bytes_; }
  // The first of them, as sentences.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::uint64_t places_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> notes_;
};

struct TraceBlocks {
  std::optional<TraceFacts> start;  // none: it was damaged
  std::optional<TraceEnd> end;      // none: the process was killed, or runs yet
  std::map<std::uint64_t, TraceThreadFacts> threads;  // by number
  std::map<std::uint64_t, std::vector<TracePiece>> events;
  std::map<std::uint64_t, TraceModule> modules;  // by beginning
  TraceDamage damage;

  // The start's facts, or none but the usual.
  const TraceFacts& facts() const;
};

// The pieces refer to `file`. An error: nothing in it is a call trace's.
absl::StatusOr<TraceBlocks> ReadTraceBlocks(std::span<const std::uint8_t> file);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_BLOCKS_H_
