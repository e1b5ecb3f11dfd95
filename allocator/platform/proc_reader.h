// The kernel's text files (/proc, /sys), read line by line on a raw file
// descriptor.
//
// Owns: nothing but an open file's descriptor while it is read. Called by:
// failures, call_trace. Thread-safety: an object belongs to one thread; safe in
// signal handlers; nothing allocates; errno is left as it was.
//
// /proc/self is of the process's first thread, which tells nothing of memory
// once it has ended while others run; /proc/thread-self is of the caller, and
// Linux before 3.17 has none. Where one tells nothing, the other is asked.
//
// Invariants:
//   RD1: a LineReader needs less than 1.5 KiB of stack, whatever the file.
//   RD2: what a line has beyond kMaxLineBytes is dropped, and no more than
//   that.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_PROC_READER_H_
#define HAKMEM_ALLOCATOR_PLATFORM_PROC_READER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace hakmem {

// How these files say that something is not limited.
inline constexpr std::uint64_t kNoLimit =
    std::numeric_limits<std::uint64_t>::max();

// Where the files are: below `root`, which is empty except in tests.
class ProcReader {
 public:
  static constexpr std::size_t kMaxPathBytes = 512;

  constexpr explicit ProcReader(const char* root = "") : root_(root) {}

  // Opens `path`, by its other name if it must; -1 on failure, with the errno
  // of the first name in `error_number`. A named pipe is not waited for.
  int Open(const char* path, int& error_number) const;

  // The number that is all of a file's first line; "max" is kNoLimit. False
  // when there is no such file or no number in it.
  bool ReadNumber(const char* path, std::uint64_t& value) const;

  // Whether the kernel once had no memory for a file or its text (ENOMEM). Open
  // and ReadNumber notice; users of a LineReader tell its error_number().
  bool memory_refused() const { return memory_refused_; }
  void NoteError(int error_number) const;

 private:
  friend class LineReader;

  int OpenBy(std::string_view path, bool other, int& error_number) const;

  const char* const root_;
  mutable bool memory_refused_ = false;
};

class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = 1024;

  LineReader(const ProcReader& files, const char* path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line, without its end; valid until the next call. False at the
  // end of the file and after an error.
  bool Next(std::string_view& line);

  // The errno of open or read; 0: none has failed.
  int error_number() const { return error_number_; }
  // How much of the file has been read.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  bool Fill();

  int error_number_ = 0;
  int fd_;
  bool drop_rest_ = false;  // of a line that was too long
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t bytes_read_ = 0;
  char buffer_[kMaxLineBytes];
};

// Takes the first word off `text`: what stands before blanks or tabs.
std::string_view TakeWord(std::string_view& text);

// Takes a number in hexadecimal, and the character behind it, off `text`.
std::uint64_t TakeHex(std::string_view& text);

// A whole number as these files write it: decimal, "max" or "unlimited".
bool ParseLimit(std::string_view text, std::uint64_t& value);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_PROC_READER_H_
