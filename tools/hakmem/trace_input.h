// The bytes of a call trace: a file's, mapped, or what a pipe has.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_INPUT_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace hakmem::tools {

class TraceInput {
 public:
  // "-" is standard input.
  explicit TraceInput(const std::string& path);
  ~TraceInput();
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  // Of the reading; what was read before an error is there.
  const absl::Status& status() const { return status_; }
  std::span<const std::uint8_t> bytes() const;

 private:
  // Whether it is a file that can be mapped.
  bool Map(const std::string& path);

  absl::Status status_;
  const std::uint8_t* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::string read_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_INPUT_H_
