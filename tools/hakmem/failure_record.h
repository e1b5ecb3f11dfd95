// One line of a failure trace (docs/failure_events.md) as a value.
#ifndef HAKMEM_TOOLS_HAKMEM_FAILURE_RECORD_H_
#define HAKMEM_TOOLS_HAKMEM_FAILURE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

inline constexpr std::string_view kFailureSchema = "hakmem-failure";
inline constexpr std::uint64_t kFailureSchemaVersion = 1;

struct Limit {
  std::string name;
  std::string source;
  std::optional<std::uint64_t> value;
  std::optional<std::uint64_t> use;
  std::optional<std::uint64_t> needed;
};

struct Refused {
  std::string call;
  std::string error;  // "ENOMEM"
  std::uint64_t bytes = 0;
};

struct Memory {
  std::uint64_t granted = 0;
  std::uint64_t cached = 0;
  std::uint64_t mapped = 0;
  std::optional<std::uint64_t> peak_mapped;
  std::optional<std::uint64_t> metadata;
  std::optional<std::uint64_t> largest_free;
  std::optional<std::uint64_t> live;  // counted for some failures
};

struct Module {
  std::string path;
  std::string build_id;
  // Where the file that a running process has can be opened; "": by its path.
  std::string source = {};
};

struct Frame {
  static constexpr std::size_t kNoModule = ~std::size_t{0};
  std::size_t module = kNoModule;  // index, else `offset` is an address
  std::uint64_t offset = 0;
};

enum class RecordKind { kStart, kFailure, kMemory, kEnd, kKilled };

struct Record {
  RecordKind kind = RecordKind::kFailure;
  std::string time;
  std::int64_t time_us = 0;  // since 1970
  std::uint64_t pid = 0;
  std::string program;
  std::string variant;
  std::string version;
  std::optional<Memory> memory;
  std::uint64_t dropped = 0;
  // kStart.
  std::vector<std::pair<std::string, std::string>> options;
  // kEnd.
  std::uint64_t failures = 0;
  // kKilled, which `hakmem run` writes; `limit` is the group's.
  std::uint64_t signal = 0;
  // kFailure.
  std::uint64_t sequence = 0;
  std::uint64_t tid = 0;
  std::string thread;
  std::string call;
  std::uint64_t size = 0;
  std::optional<std::uint64_t> alignment;
  std::optional<std::uint64_t> count;
  std::string route;
  std::optional<std::uint64_t> class_bytes;
  std::string reason;
  std::string detail;
  std::string disposition;
  std::uint64_t attempts = 0;
  std::optional<Refused> refused;
  std::optional<Limit> limit;
  std::vector<Limit> limits;
  std::vector<Module> modules;
  std::vector<Frame> stack;
};

// Whether the caller got no memory: hakmem may also have found a way.
bool CallFailed(const Record& record);

// The error is a few words that say what is wrong with it.
absl::StatusOr<Record> ParseRecord(std::string_view json);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FAILURE_RECORD_H_
