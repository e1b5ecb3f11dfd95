#include "allocator/platform/proc_reader.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "allocator/base/call_filter.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/write_once.h"

namespace hakmem {

namespace {

constexpr std::string_view kFirst = "/proc/self/";
constexpr std::string_view kThis = "/proc/thread-self/";

}  // namespace

// With `other`, by the name among another thread's files; -1: it has none.
int ProcReader::OpenBy(std::string_view path, bool other,
                       int& error_number) const {
  error_number = EPERM;
  if (IsFilterNoted()) return -1;
  std::string_view folder;
  if (other) {
    const bool first = path.starts_with(kFirst);
    if (!first && !path.starts_with(kThis)) return -1;
    path.remove_prefix(first ? kFirst.size() : kThis.size());
    folder = first ? kThis : kFirst;
  }
  char full[kMaxPathBytes];
  std::size_t length = 0;
  for (const std::string_view part : {std::string_view(root_), folder, path}) {
    if (part.size() >= sizeof(full) - length) {
      error_number = ENAMETOOLONG;
      return -1;
    }
    length += part.copy(full + length, part.size());
  }
  full[length] = '\0';
  const int fd = OpenFile(full, O_RDONLY | O_NONBLOCK, 0, error_number);
  NoteError(error_number);
  return fd;
}

int ProcReader::Open(const char* path, int& error_number) const {
  const int fd = OpenBy(path, /*other=*/false, error_number);
  int ignored = 0;
  return fd >= 0 ? fd : OpenBy(path, /*other=*/true, ignored);
}

void ProcReader::NoteError(int error_number) const {
  if (error_number == ENOMEM) memory_refused_ = true;
}

bool ProcReader::ReadNumber(const char* path, std::uint64_t& value) const {
  LineReader reader(*this, path);
  std::string_view line;
  const bool read = reader.Next(line) && ParseLimit(line, value);
  NoteError(reader.error_number());
  return read;
}

LineReader::LineReader(const ProcReader& files, const char* path)
    : fd_(files.OpenBy(path, /*other=*/false, error_number_)) {
  if (Fill()) return;
  // First: there may be no second descriptor.
  if (fd_ >= 0) SystemCall(SYS_close, fd_);
  int ignored = 0;
  fd_ = files.OpenBy(path, /*other=*/true, ignored);
  if (fd_ >= 0) error_number_ = 0;
}

LineReader::~LineReader() {
  if (fd_ >= 0) SystemCall(SYS_close, fd_);
}

bool LineReader::Fill() {
  if (fd_ < 0) return false;
  if (begin_ > 0) {
    std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  long got = 0;
  do {
    got = SystemCall(SYS_read, fd_, buffer_ + end_, sizeof(buffer_) - end_);
  } while (got == -EINTR);
  if (got < 0) error_number_ = ErrorOf(got);
  if (got <= 0) return false;
  end_ += static_cast<std::size_t>(got);
  bytes_read_ += static_cast<std::uint64_t>(got);
  return true;
}

bool LineReader::Next(std::string_view& line) {
  for (;;) {
    const std::size_t length = end_ - begin_;
    const void* const newline = std::memchr(buffer_ + begin_, '\n', length);
    const bool whole = newline != nullptr;
    if (drop_rest_) {
      begin_ = whole ? static_cast<std::size_t>(
                           static_cast<const char*>(newline) - buffer_) +
                           1
                     : end_;
      drop_rest_ = !whole;
      if (!whole && !Fill()) return false;
      continue;
    }
    if (whole) {
      const auto end =
          static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_);
      line = {buffer_ + begin_, end - begin_};
      begin_ = end + 1;
      return true;
    }
    if (length == sizeof(buffer_)) {
      drop_rest_ = true;
    } else if (Fill()) {
      continue;
    } else if (length == 0 || error_number_ != 0) {
      return false;
    }
    line = {buffer_ + begin_, length};
    begin_ = end_;
    return true;
  }
}

std::string_view TakeWord(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

std::uint64_t TakeHex(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty()) {
    const char digit = text.front();
    text.remove_prefix(1);
    if (digit >= '0' && digit <= '9') {
      value = value * 16 + static_cast<std::uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = value * 16 + static_cast<std::uint64_t>(digit - 'a') + 10;
    } else {
      break;
    }
  }
  return value;
}

bool ParseLimit(std::string_view text, std::uint64_t& value) {
  if (text == "max" || text == "unlimited") {
    value = kNoLimit;
    return true;
  }
  return ParseDecimal(text, value);
}

}  // namespace hakmem
