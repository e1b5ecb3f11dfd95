#include "tools/hakmem/failure_reader.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kMarker = "\"hakmem-failure\"";
// These are in no line but a record's.
constexpr std::string_view kInside[] = {"\"monotonic_ns\":",
                                        "\"disposition\":\""};

// Where the record whose schema is named at `marker` begins, not before `from`;
// npos if that is no record's beginning.
std::size_t BeginningOf(std::string_view line, std::size_t from,
                        std::size_t marker) {
  const std::size_t brace = line.rfind('{', marker);
  if (brace == std::string_view::npos || brace < from) {
    return std::string_view::npos;
  }
  std::string between(line.substr(brace + 1, marker - brace - 1));
  std::erase_if(between, [](char c) { return c == ' ' || c == '\t'; });
  return between == "\"schema\":" ? brace : std::string_view::npos;
}

// One beyond the brace that closes the one at `start`; npos if none does.
std::size_t EndOfObject(std::string_view line, std::size_t start) {
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t at = start; at < line.size(); ++at) {
    const char c = line[at];
    if (in_text) {
      if (c == '\\') ++at;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

bool LooksLikePartOfRecord(std::string_view line) {
  for (const std::string_view inside : kInside) {
    if (absl::StrContains(line, inside)) return true;
  }
  return false;
}

}  // namespace

FailureReader::FailureReader(std::function<void(const Record&)> on_record,
                             std::function<void(const Problem&)> on_problem)
    : on_record_(std::move(on_record)), on_problem_(std::move(on_problem)) {}

void FailureReader::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return AddToLine(bytes);
    AddToLine(bytes.substr(0, end));
    EndLine(/*complete=*/true);
    bytes.remove_prefix(end + 1);
  }
}

void FailureReader::Finish() {
  if (!text_.empty() || too_long_) EndLine(/*complete=*/false);
}

void FailureReader::AddToLine(std::string_view bytes) {
  if (too_long_ || text_.size() + bytes.size() > kMaxLineBytes) {
    too_long_ = true;
    text_.clear();
  } else {
    text_.append(bytes);
  }
}

void FailureReader::EndLine(bool complete) {
  ++line_;
  if (too_long_) {
    Report(absl::StrCat("is longer than ", Bytes(kMaxLineBytes)));
  } else {
    ReadLine(complete);
  }
  text_.clear();
  too_long_ = false;
}

void FailureReader::ReadLine(bool complete) {
  bool ours = false;
  std::size_t from = 0;
  std::size_t search = 0;
  std::size_t marker;
  while ((marker = text_.find(kMarker, search)) != std::string::npos) {
    search = marker + kMarker.size();
    const std::size_t start = BeginningOf(text_, from, marker);
    if (start == std::string::npos) continue;
    ours = true;
    const std::size_t end = ReadObject(start, complete);
    from = end == 0 ? search : end;
    search = from;
  }
  if (ours) return;
  if (LooksLikePartOfRecord(text_)) {
    Report("has only the end of a record");
  } else {
    ++other_lines_;
  }
}

std::size_t FailureReader::ReadObject(std::size_t start, bool complete) {
  const std::size_t end = EndOfObject(text_, start);
  if (end == std::string::npos) {
    Report(complete ? "has a record that is cut off"
                    : "has a record that is cut off where the file ends");
    return 0;
  }
  const std::string_view json =
      std::string_view(text_).substr(start, end - start);
  const absl::StatusOr<Record> record = ParseRecord(json);
  if (!record.ok()) {
    Report(absl::StrCat("has a record that cannot be read: ",
                        ForTerminal(record.status().message())));
    return 0;
  }
  ++records_;
  on_record_(*record);
  return end;
}

void FailureReader::Report(std::string what) {
  on_problem_({line_, std::move(what)});
}

}  // namespace hakmem::tools
