// Memory straight from the kernel, so that what the replayer keeps for itself
// is not in any figure of the allocator it measures.
//
// Owns: the mappings. Called by: the replayer and the converter.
// Thread-safety: none; elements are the caller's.
// Invariants:
//   M1: an array's elements are zero bytes until they are written, so T must
//       be a type for which that is a value.
#ifndef HAKMEM_BENCHMARKS_TRACES_MAPPED_MEMORY_H_
#define HAKMEM_BENCHMARKS_TRACES_MAPPED_MEMORY_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace hakmem::traces {

// `bytes` of a mapping, unmapped at the end. Empty: none.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }

  void* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

template <typename T>
class MappedArray {
 public:
  MappedArray() = default;

  // False: no memory.
  bool Create(std::size_t count) {
    if (count == 0) return true;
    const std::size_t bytes = count * sizeof(T);
    void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) return false;
    mapping_ = Mapping(begin, bytes);
    count_ = count;
    return true;
  }

  std::span<T> items() const {
    return {static_cast<T*>(mapping_.begin()), count_};
  }
  T& operator[](std::size_t index) const { return items()[index]; }

 private:
  Mapping mapping_;
  std::size_t count_ = 0;
};

// A whole file, read-only.
class MappedFile {
 public:
  // Null when it worked, else why not.
  const char* Open(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::strerror(errno);
    struct stat status = {};
    const char* error = nullptr;
    if (fstat(file, &status) != 0) {
      error = std::strerror(errno);
    } else if (!S_ISREG(status.st_mode)) {
      error = "not a file";
    } else if (status.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      void* const begin = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (begin == MAP_FAILED) {
        error = std::strerror(errno);
      } else {
        mapping_ = Mapping(begin, bytes);
      }
    }
    close(file);
    return error;
  }

  std::span<const std::uint8_t> bytes() const {
    return {static_cast<const std::uint8_t*>(mapping_.begin()),
            mapping_.bytes()};
  }

 private:
  Mapping mapping_;
};

}  // namespace hakmem::traces

#endif  // HAKMEM_BENCHMARKS_TRACES_MAPPED_MEMORY_H_
