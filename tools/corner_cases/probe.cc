// Asks the allocator of this process one question of the C library's corner
// cases, and prints the answer in a few words. tools/corner_cases/
// corner_cases.py runs it, once for each question and allocator.
//
//   probe --list        the questions, one a line
//   probe QUESTION      the answer
//   probe --version     the allocator's version, where there is a call for it
//   probe --file        the file that has the allocator
//
// Blocks are not freed: a function that the allocator lacks is libc's, and its
// blocks belong to another heap.
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

namespace {

// What the compiler cannot know, so that each call takes place.
volatile size_t zero = 0;
volatile size_t huge = SIZE_MAX / 2 + 2;
volatile int untouched_errno = 77;
void* volatile nothing = nullptr;

std::string ErrnoName(int error) {
  if (error == ENOMEM) return "ENOMEM";
  if (error == EINVAL) return "EINVAL";
  if (error == untouched_errno) return "errno kept";
  return "errno " + std::to_string(error);
}

std::string Answer(const void* block) {
  const int error = errno;
  return block == nullptr ? "NULL, " + ErrnoName(error) : "a block";
}

// Whether blocks of an odd alignment are aligned to the next power of two: one
// may be so by chance, 32 of 48 bytes are not.
template <typename Allocate>
std::string OddAnswer(Allocate allocate) {
  uintptr_t addresses = 0;
  for (int i = 0; i < 32; ++i) {
    const void* block = allocate(zero + 24, 48);
    if (block == nullptr) return Answer(block);
    addresses |= reinterpret_cast<uintptr_t>(block);
  }
  return addresses % 32 == 0 ? "aligned to 32" : "aligned to 16";
}

std::string Usable(const void* block) {
  if (block == nullptr) return Answer(block);
  return "a block of " +
         std::to_string(malloc_usable_size(const_cast<void*>(block)));
}

std::string Distinct() {
  const void* first = malloc(zero);
  const void* second = malloc(zero);
  if (first == nullptr) return Answer(first);
  return first == second ? "the same block" : "two blocks";
}

std::string PosixMemalign(size_t alignment, size_t size) {
  void* block = nothing;
  errno = untouched_errno;
  const int result = posix_memalign(&block, alignment, size);
  const int error = errno;
  if (result != 0) return ErrnoName(result) + "; " + ErrnoName(error);
  return block == nullptr ? "0; NULL" : "0; a block";
}

std::string FailedRealloc() {
  char* block = static_cast<char*>(malloc(100));
  memset(block, 'a', 100);
  errno = untouched_errno;
  const void* moved = realloc(block, huge);
  if (moved != nullptr) return "a block";
  const std::string answer = ErrnoName(errno);
  for (int i = 0; i < 100; ++i) {
    if (block[i] != 'a') return "NULL, " + answer + ", the block changed";
  }
  return "NULL, " + answer + ", the block stays";
}

std::string ErrnoOfFree() {
  void* block = malloc(100);
  errno = untouched_errno;
  free(block);
  return ErrnoName(errno);
}

std::string ReallocToZero() {
  void* block = malloc(100);
  errno = untouched_errno;
  return Answer(realloc(block, zero));
}

struct Question {
  const char* text;
  const char* function;
  std::string (*ask)();
};

const Question kQuestions[] = {
    {"malloc(0)", "malloc", [] { return Usable(malloc(zero)); }},
    {"malloc(0), twice", "malloc", Distinct},
    {"malloc(PTRDIFF_MAX + 2)", "malloc", [] { return Answer(malloc(huge)); }},
    {"calloc(0, 8)", "calloc", [] { return Answer(calloc(zero, 8)); }},
    {"calloc(SIZE_MAX / 2 + 2, 2)", "calloc",
     [] { return Answer(calloc(huge, 2)); }},
    {"realloc(NULL, 0)", "realloc",
     [] { return Answer(realloc(nothing, zero)); }},
    {"realloc(p, 0)", "realloc", ReallocToZero},
    {"realloc(p, PTRDIFF_MAX + 2)", "realloc", FailedRealloc},
    {"reallocarray(p, SIZE_MAX / 2 + 2, 2)", "reallocarray",
     [] { return Answer(reallocarray(malloc(100), huge, 2)); }},
    {"aligned_alloc(0, 64)", "aligned_alloc",
     [] { return Answer(aligned_alloc(zero, 64)); }},
    {"aligned_alloc(24, 48)", "aligned_alloc",
     [] { return OddAnswer(aligned_alloc); }},
    {"aligned_alloc(64, 65)", "aligned_alloc",
     [] { return Answer(aligned_alloc(zero + 64, 65)); }},
    {"memalign(0, 64)", "memalign", [] { return Answer(memalign(zero, 64)); }},
    {"memalign(24, 48)", "memalign", [] { return OddAnswer(memalign); }},
    {"posix_memalign(&p, 24, 64)", "posix_memalign",
     [] { return PosixMemalign(zero + 24, 64); }},
    {"posix_memalign(&p, 4, 64)", "posix_memalign",
     [] { return PosixMemalign(zero + 4, 64); }},
    {"posix_memalign(&p, 64, 0)", "posix_memalign",
     [] { return PosixMemalign(zero + 64, zero); }},
    {"posix_memalign(&p, 64, PTRDIFF_MAX + 2)", "posix_memalign",
     [] { return PosixMemalign(zero + 64, huge); }},
    {"valloc(0)", "valloc", [] { return Answer(valloc(zero)); }},
    {"pvalloc(0)", "pvalloc", [] { return Usable(pvalloc(zero)); }},
    {"pvalloc(SIZE_MAX)", "pvalloc", [] { return Answer(pvalloc(~zero)); }},
    {"malloc_usable_size(NULL)", "malloc_usable_size",
     [] { return std::to_string(malloc_usable_size(nothing)); }},
    {"errno after free(p)", "free", ErrnoOfFree},
};

// The file that has the function which a program of this process calls.
std::string FileOf(const char* function) {
  Dl_info info;
  void* address = dlsym(RTLD_DEFAULT, function);
  if (address == nullptr || dladdr(address, &info) == 0) return "";
  return info.dli_fname;
}

template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

int PrintVersion() {
  if (auto hakmem = Find<const char* (*)()>("hakmem_version")) {
    printf("%s\n", hakmem());
  } else if (auto mimalloc = Find<int (*)()>("mi_version")) {
    const int version = mimalloc();
    // 3.4.3 is 30403, and was 343.
    const int base = version < 1000 ? 10 : 100;
    printf("%d.%d.%d\n", version / (base * base), version / base % base,
           version % base);
  } else if (auto tcmalloc = Find<const char* (*)(int*, int*, const char**)>(
                 "tc_version")) {
    printf("%s\n", tcmalloc(nullptr, nullptr, nullptr) + strlen("gperftools "));
  } else if (auto mallctl =
                 Find<int (*)(const char*, void*, size_t*, void*, size_t)>(
                     "mallctl")) {
    const char* version = "";
    size_t bytes = sizeof(version);
    mallctl("version", static_cast<void*>(&version), &bytes, nullptr, 0);
    printf("%.*s\n", static_cast<int>(strcspn(version, "-")), version);
  } else if (FileOf("malloc") == FileOf("strlen") ||
             FileOf("malloc").find("libc.so") != std::string::npos) {
    printf("%s\n", gnu_get_libc_version());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "--version") == 0) return PrintVersion();
  if (strcmp(argv[1], "--file") == 0) return puts(FileOf("malloc").c_str()) < 0;
  if (strcmp(argv[1], "--list") == 0) {
    for (const Question& question : kQuestions) puts(question.text);
    return 0;
  }
  for (const Question& question : kQuestions) {
    if (strcmp(argv[1], question.text) != 0) continue;
    errno = untouched_errno;
    const std::string answer = question.ask();
    const bool is_own = FileOf(question.function) == FileOf("malloc");
    printf("%s%s\n", answer.c_str(), is_own ? "" : " (libc's)");
    return 0;
  }
  return 2;
}
