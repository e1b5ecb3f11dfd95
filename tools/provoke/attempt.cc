#include "tools/provoke/attempt.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hakmem::provoke {
namespace {

constexpr std::size_t kPageBytes = 4096;

void* CallPosixMemalign(const Request& request, int& error_number) {
  void* block = nullptr;
  error_number = posix_memalign(&block, request.alignment, request.size);
  return error_number == 0 ? block : nullptr;
}

void* CallC(const Request& request) {
  switch (request.call) {
    case Call::kCalloc:
      return calloc(request.count, request.size);
    case Call::kRealloc:
      return realloc(request.block, request.size);
    case Call::kReallocArray:
      return reallocarray(request.block, request.count, request.size);
    case Call::kAlignedAlloc:
      return aligned_alloc(request.alignment, request.size);
    case Call::kMemalign:
      return memalign(request.alignment, request.size);
    case Call::kValloc:
      return valloc(request.size);
    case Call::kPvalloc:
      return pvalloc(request.size);
    default:
      return malloc(request.size);
  }
}

// The functions by name: what a new-expression calls may be left out by the
// compiler.
void* CallOperator(const Request& request) {
  const std::align_val_t alignment{request.alignment};
  switch (request.call) {
    case Call::kNewArray:
      return ::operator new[](request.size);
    case Call::kNewNothrow:
      return ::operator new(request.size, std::nothrow);
    case Call::kNewArrayNothrow:
      return ::operator new[](request.size, std::nothrow);
    case Call::kNewAligned:
      return ::operator new(request.size, alignment);
    case Call::kNewArrayAligned:
      return ::operator new[](request.size, alignment);
    case Call::kNewAlignedNothrow:
      return ::operator new(request.size, alignment, std::nothrow);
    case Call::kNewArrayAlignedNothrow:
      return ::operator new[](request.size, alignment, std::nothrow);
    default:
      return ::operator new(request.size);
  }
}

void Keep(const Outcome& outcome) {
  Log& log = TheLog();
  if (log.failed < Log::kKept) log.failures[log.failed] = outcome;
  ++log.failed;
}

}  // namespace

const char* CallName(Call call) {
  constexpr const char* kNames[kCalls] = {
      "malloc",
      "calloc",
      "realloc",
      "reallocarray",
      "aligned_alloc",
      "memalign",
      "posix_memalign",
      "valloc",
      "pvalloc",
      "operator new",
      "operator new[]",
      "operator new(nothrow)",
      "operator new[](nothrow)",
      "operator new",
      "operator new[]",
      "operator new(nothrow)",
      "operator new[](nothrow)",
  };
  return kNames[static_cast<unsigned>(call)];
}

const char* ResultName(Result result) {
  constexpr const char* kNames[] = {"served", "null", "threw", "error"};
  return kNames[static_cast<unsigned>(result)];
}

Log& TheLog() {
  static Log* const log =
      static_cast<Log*>(mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  return *log;
}

void* Try(const Request& request) {
  Outcome outcome = {.request = request};
  void* block = nullptr;
  errno = 0;
  if (request.call == Call::kPosixMemalign) {
    block = CallPosixMemalign(request, outcome.error_number);
    outcome.result = Result::kError;
  } else if (request.call < Call::kNew) {
    block = CallC(request);
    outcome.error_number = errno;
    outcome.result = Result::kNull;
  } else {
    try {
      block = CallOperator(request);
      outcome.error_number = errno;
      outcome.result = Result::kNull;
    } catch (const std::bad_alloc&) {
      outcome.result = Result::kThrew;
    }
  }
  if (block == nullptr) {
    Keep(outcome);
  } else {
    ++TheLog().served;
  }
  return block;
}

bool Pile::Fill(const Request& request, std::size_t most_bytes, bool touch) {
  for (std::size_t bytes = 0; bytes < most_bytes; bytes += request.size) {
    void* const block = Try(request);
    if (block == nullptr) return true;
    if (touch) {
      for (std::size_t at = 0; at < request.size; at += kPageBytes) {
        static_cast<volatile char*>(block)[at] = 1;
      }
    }
    std::memcpy(block, &newest_, sizeof(newest_));
    newest_ = block;
  }
  return false;
}

void Pile::Free() {
  while (newest_ != nullptr) {
    void* const block = newest_;
    std::memcpy(&newest_, block, sizeof(newest_));
    free(block);
  }
}

}  // namespace hakmem::provoke
