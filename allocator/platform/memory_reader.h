// Reads this process's own memory where it may not be there: a wild pointer
// gives false instead of a fault, and nothing can be unmapped in between.
//
// Owns: while it lives, perhaps a descriptor of /proc/thread-self/mem. Called
// by: unwinder, modules, cached_unwinder. Thread-safety: an object belongs to
// one thread; safe in signal handlers; nothing allocates; errno is left as it
// was.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_MEMORY_READER_H_
#define HAKMEM_ALLOCATOR_PLATFORM_MEMORY_READER_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

// The smallest page there is: memory does not end within one.
inline constexpr std::size_t kSmallestPageBytes = 4096;

class MemoryReader {
 public:
  MemoryReader() = default;
  // Reads in [mapped_begin, mapped_end) alone, which stays mapped and readable
  // while this object lives; the kernel is asked nothing.
  MemoryReader(std::uintptr_t mapped_begin, std::uintptr_t mapped_end)
      : mapped_begin_(mapped_begin),
        mapped_bytes_(mapped_end - mapped_begin),
        by_kernel_(false) {}
  ~MemoryReader();
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  // Copies [address, address + bytes) to `to`. False, with nothing promised of
  // `to`, when not all of it can be read, or when the kernel lets this process
  // read its own memory in no way that cannot fault.
  bool Read(std::uintptr_t address, void* to, std::size_t bytes);

  // Copies the text at `address`, up to its NUL or to `capacity` - 1 bytes, and
  // terminates it. False when no end can be read.
  bool ReadText(std::uintptr_t address, char* to, std::size_t capacity);

 private:
  bool ReadFromFile(std::uintptr_t address, void* to, std::size_t bytes);

  std::uintptr_t mapped_begin_ = 0;
  std::size_t mapped_bytes_ = 0;
  bool by_kernel_ = true;
  // Which way is open: process_vm_readv, until a sandbox refuses it; then
  // /proc/thread-self/mem.
  bool by_file_ = false;
  int fd_ = -1;
  long thread_ = 0;  // this one; 0: not asked yet
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_MEMORY_READER_H_
