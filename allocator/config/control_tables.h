// Where a process takes commands of others: for writers in other processes, by
// the exported symbol hakmem_control (docs/process_tables.md).
//
// Owns: the layout. Called by: frontend; `hakmem purge` and `hakmem option`
// write there. Thread-safety: constants.
//
// Invariants:
//   CT1: fields and commands are only ever added at the end; `version` changes
//        when one of the others changes its meaning.
#ifndef HAKMEM_ALLOCATOR_CONFIG_CONTROL_TABLES_H_
#define HAKMEM_ALLOCATOR_CONFIG_CONTROL_TABLES_H_

#include <cstdint>

namespace hakmem {

enum class ControlCommand : std::uint8_t {
  kPurge = 1,    // as hakmem_purge(); the result: bytes
  kDecayMs = 2,  // the decay delay is the argument; the result: what it was
};

struct ControlTables {
  static constexpr std::uint32_t kVersion = 1;

  char magic[8];  // "hakctrl" and NUL
  std::uint32_t version;
  std::uint32_t table_bytes;  // of this structure
  const void* allowed;        // an uint32_t; 0: the process obeys nobody
  // Each an uint64_t.
  const void* argument;
  const void* request;  // written last
  const void* done;     // the last request that was obeyed
  const void* result;   // of it
};

// A request: in its low half the command and above it a number that is another
// one each time; in its high half the complement of the low one.
constexpr std::uint64_t MakeControlRequest(std::uint32_t number,
                                           ControlCommand command) {
  const std::uint32_t low = number << 8 | static_cast<std::uint32_t>(command);
  return std::uint64_t{~low} << 32 | low;
}
constexpr bool IsControlRequest(std::uint64_t request) {
  const auto low = static_cast<std::uint32_t>(request);
  return static_cast<std::uint32_t>(request >> 32) ==
         static_cast<std::uint32_t>(~low);
}
constexpr std::uint32_t ControlNumberOf(std::uint64_t request) {
  return static_cast<std::uint32_t>(request) >> 8;
}
constexpr ControlCommand ControlCommandOf(std::uint64_t request) {
  return static_cast<ControlCommand>(request & 0xff);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_CONTROL_TABLES_H_
