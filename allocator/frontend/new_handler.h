// The course of `operator new` when memory is short: the new-handler, then
// std::bad_alloc; both belong to the program's C++ runtime, which hakmem does
// not link.
//
// Owns: nothing. Called by: c_symbols.inc, cpp_operators.inc.
// Thread-safety: any thread. May run user code and may throw.
//
// A call makes one failure event, however often the handler is called: it is in
// the ring before the first time, and complete when the call ends, also when
// the handler throws.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_
#define HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_

#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/core/call_result.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

using NewHandler = void (*)();

// The family that the blocks of an entry point belong to.
constexpr BlockKind KindOf(Call call, bool aligned = false) {
  switch (call) {
    case Call::kNew:
    case Call::kNewNothrow:
      return aligned ? BlockKind::kAlignedNew : BlockKind::kNew;
    case Call::kNewArray:
    case Call::kNewArrayNothrow:
      return aligned ? BlockKind::kAlignedNewArray : BlockKind::kNewArray;
    default:
      return BlockKind::kMalloc;
  }
}

// Whether the entry point throws where memory cannot be had.
constexpr bool Throws(Call call) {
  return call == Call::kNew || call == Call::kNewArray;
}

// The end of a call that was refused: calls the new-handler and tries again,
// until there is a block (never null); without a handler throws std::bad_alloc.
HAK_COLD void* ResolveOrThrow(Call call, std::size_t size,
                              std::size_t alignment, CallResult got,
                              const void* frame);

// The same, but null without a handler, or when it throws.
HAK_COLD void* ResolveOrNull(Call call, std::size_t size, std::size_t alignment,
                             CallResult got, const void* frame) noexcept;

// For an alignment that is no power of two.
HAK_COLD void* ThrowForAlignment(std::size_t size, std::size_t alignment,
                                 Call call);
HAK_COLD void* NullForAlignment(std::size_t size, std::size_t alignment,
                                Call call);

// The nothrow forms beyond their hot paths.
HAK_NOINLINE void* NothrowNewSlow(std::size_t size, Call call, bool aligned,
                                  std::size_t alignment) noexcept;

// The program's; null: it has none.
HAK_COLD NewHandler CurrentNewHandler();

// Throws std::bad_alloc, or ends the process when there is no C++ runtime.
[[noreturn]] HAK_COLD void ThrowBadAlloc(std::size_t size);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_NEW_HANDLER_H_
