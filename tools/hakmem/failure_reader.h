// Finds the records in a stream of bytes, which may also hold other programs'
// output, lines that were cut off, and damage.
//
// A record may stand anywhere in a line: a program that shares standard error
// may have written half a line before it. What is not part of a record is
// passed over and counted. What was a record and cannot be read is a Problem
// with its line number.
#ifndef HAKMEM_TOOLS_HAKMEM_FAILURE_READER_H_
#define HAKMEM_TOOLS_HAKMEM_FAILURE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {

struct Problem {
  std::uint64_t line = 0;
  std::string what;
};

class FailureReader {
 public:
  // A longer line is not kept: no record comes near.
  static constexpr std::size_t kMaxLineBytes = std::size_t{256} * 1024;

  FailureReader(std::function<void(const Record&)> on_record,
                std::function<void(const Problem&)> on_problem);

  // The next bytes, however they are cut.
  void Add(std::string_view bytes);

  // The stream has ended: what is left is the last line.
  void Finish();

  std::uint64_t lines() const { return line_; }
  std::uint64_t records() const { return records_; }
  // Lines that held nothing of hakmem's.
  std::uint64_t other_lines() const { return other_lines_; }

 private:
  void AddToLine(std::string_view bytes);
  void EndLine(bool complete);
  void ReadLine(bool complete);
  // Reads the record that begins at `start`; returns where it ends, or 0.
  std::size_t ReadObject(std::size_t start, bool complete);
  void Report(std::string what);

  std::function<void(const Record&)> on_record_;
  std::function<void(const Problem&)> on_problem_;
  std::string text_;        // of the line so far
  bool too_long_ = false;   // the line so far
  std::uint64_t line_ = 0;  // lines that have ended
  std::uint64_t records_ = 0;
  std::uint64_t other_lines_ = 0;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FAILURE_READER_H_
