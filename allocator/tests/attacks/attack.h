// Shared by the attack programs. Each tries one attack on the heap, in the way
// that its first argument names, with no more than a defect of a program gives
// away, and ends with one line on stdout that begins "attack: ". The comments
// above its main are read by cases.py:
//   // attack CASE: what is tried, a row of the table in docs/attacks.md
//   // expect CASE: what comes of it under hakmem
//   // expect[hardened debug] CASE: the same for these variants
#ifndef HAKMEM_ALLOCATOR_TESTS_ATTACKS_ATTACK_H_
#define HAKMEM_ALLOCATOR_TESTS_ATTACKS_ATTACK_H_

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "allocator/tests/opaque.h"

namespace hakmem {

// Sizes that fill a block in most allocators: one of a small class, one beyond
// what thread caches hold in some, one that is served in pages.
inline constexpr std::size_t kSmall = 64;
inline constexpr std::size_t kMiddle = 5120;
inline constexpr std::size_t kLarge = 200000;

// Outcomes. Nothing runs after them: the heap is in whatever state it is.
[[noreturn]] inline void End(const char* line) {
  (void)!write(STDOUT_FILENO, line, strlen(line));
  _exit(0);
}
[[noreturn]] inline void Succeeded() { End("attack: succeeded\n"); }
[[noreturn]] inline void Failed(const char* reason) {
  char line[200];
  snprintf(line, sizeof line, "attack: failed (%s)\n", reason);
  End(line);
}
[[noreturn]] inline void SucceededIn(int count, int tries) {
  char line[200];
  snprintf(line, sizeof line, "attack: succeeded in %d of %d tries\n", count,
           tries);
  End(line);
}

// Whether it is the attacker who reads or writes just now.
inline volatile sig_atomic_t attacker_at_work = 0;

class Attacker {
 public:
  Attacker() { attacker_at_work = 1; }
  ~Attacker() { attacker_at_work = 0; }
};

// Memory that refuses the attacker's access stops him; any other fault is one
// of the allocator, or of the program on memory it was given.
inline void EndOnFault(int) {
  End(attacker_at_work ? "attack: stopped by a fault\n"
                       : "attack: crashed the allocator\n");
}

inline void Begin() {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(SIGSEGV, EndOnFault);
  signal(SIGBUS, EndOnFault);
}

inline bool Is(const char* argument, const char* name) {
  return strcmp(argument, name) == 0;
}

inline char* Allocate(std::size_t size_bytes) {
  char* const block = static_cast<char*>(Opaque(malloc(size_bytes)));
  if (block == nullptr) Failed("no memory");
  return block;
}
// Frees without the compiler's advice.
inline void Free(void* pointer) { free(Opaque(pointer)); }

inline void Fill(char* from, char with, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) Opaque(from)[i] = with;
}
inline bool IsFilled(const char* from, char with, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (Opaque(from)[i] != with) return false;
  }
  return true;
}

// Byte by byte: an allocator may export a memcpy that checks.
inline void Copy(char* to, const char* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) Opaque(to)[i] = Opaque(from)[i];
}
inline void StoreWord(char* at, std::uintptr_t word) {
  Copy(at, reinterpret_cast<const char*>(&word), sizeof word);
}
inline std::uintptr_t LoadWord(const char* at) {
  std::uintptr_t word;
  Copy(reinterpret_cast<char*>(&word), at, sizeof word);
  return word;
}

// Another thread, which runs the function meanwhile.
template <typename Function>
class Thread {
 public:
  explicit Thread(Function function) : function_(function) {
    if (pthread_create(&thread_, nullptr, Run, this) != 0) abort();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { pthread_join(thread_, nullptr); }

 private:
  static void* Run(void* self) {
    static_cast<Thread*>(self)->function_();
    return nullptr;
  }

  Function function_;
  pthread_t thread_;
};

template <typename Function>
void InOtherThread(Function function) {
  const Thread thread(function);
}

// Blocks of one size, filled with 'v'; in the table by address.
template <int kCount>
class Blocks {
 public:
  explicit Blocks(std::size_t size_bytes) : size_bytes_(size_bytes) {
    for (char*& block : blocks_) {
      block = Allocate(size_bytes);
      Fill(block, 'v', size_bytes);
    }
    std::sort(blocks_, blocks_ + kCount);
  }

  char*& operator[](int i) { return blocks_[i]; }

  // How far apart two of them are that are neighbours: what an attacker knows
  // who has tried the same program.
  std::size_t Stride() const {
    std::ptrdiff_t stride = blocks_[1] - blocks_[0];
    for (int i = 2; i < kCount; ++i) {
      stride = std::min(stride, blocks_[i] - blocks_[i - 1]);
    }
    return static_cast<std::size_t>(stride);
  }
  // One whose upper and lower neighbours are as near as can be.
  int WithNeighbours() const {
    const auto stride = static_cast<std::ptrdiff_t>(Stride());
    for (int i = kCount / 2; i < kCount - 1; ++i) {
      if (blocks_[i + 1] - blocks_[i] == stride &&
          blocks_[i] - blocks_[i - 1] == stride) {
        return i;
      }
    }
    return kCount / 2;
  }

  bool AnyChanged(const char* but = nullptr) const {
    return std::any_of(blocks_, blocks_ + kCount, [&](const char* block) {
      return block != but && !IsFilled(block, 'v', size_bytes_);
    });
  }
  void FreeAll(const char* but = nullptr) {
    for (char* block : blocks_) {
      if (block != but) Free(block);
    }
  }

 private:
  std::size_t size_bytes_;
  char* blocks_[kCount];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_TESTS_ATTACKS_ATTACK_H_
