// `operator new` when memory is short. Compiled with exceptions, because the
// new-handler may throw, and the event must be complete all the same. The
// symbols that this needs of a C++ runtime are weak.

#include <cstddef>
#include <new>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/new_handler.h"

// What catching needs of a C++ runtime is weak, so that hakmem depends on libc
// alone. So this file stays out of link-time optimisation, which would move its
// references away from what is said of them here (.bazelrc).
// The compiler itself makes the references to these.
__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak _ZSt9terminatev\n"
    ".weak _Unwind_Resume\n");
extern "C" HAK_WEAK void* HakBeginCatch(void*) __asm__("__cxa_begin_catch");

namespace hakmem {
namespace {

// False: the program has no runtime that hakmem can see (a plugin may have
// loaded one privately), and nothing can be caught.
bool CanCatch() { return &HakBeginCatch != nullptr; }

// Finishes the event if the new-handler throws. Without a runtime that hakmem
// can see, nothing is run when a stack unwinds; then the event stays pending.
class HandlerCall {
 public:
  HandlerCall(FailedCall& failed, Disposition if_thrown)
      : failed_(failed), if_thrown_(if_thrown) {}
  ~HandlerCall() {
    if (!returned_) ProductRecovery().Finish(failed_, if_thrown_);
  }
  HandlerCall(const HandlerCall&) = delete;
  HandlerCall& operator=(const HandlerCall&) = delete;

  void Run(NewHandler handler) {
    handler();
    returned_ = true;
  }

 private:
  FailedCall& failed_;
  const Disposition if_thrown_;
  bool returned_ = false;
};

// The block; null when the event is finished with `give_up`.
void* Resolve(const Request& request, const CallResult& got,
              Disposition give_up, const void* frame) {
  FailedCall failed;
  void* block = ProductRecover(request, got, frame, failed);
  while (block == nullptr) {
    const NewHandler handler = CurrentNewHandler();
    if (handler == nullptr) {
      ProductRecovery().Finish(failed, give_up);
      return nullptr;
    }
    ProductRecovery().Announce(failed);
    HandlerCall(failed, give_up).Run(handler);
    block = ProductTryAgain(failed);
    if (block != nullptr) {
      ProductRecovery().Finish(failed, Disposition::kServedAfterNewHandler);
    }
  }
  ProductTraceRecovered(failed, block, frame);
  return block;
}

}  // namespace

// Without a frame both are called last, so that operators jump here and their
// caller is ours.

void* ResolveOrThrow(Call call, std::size_t size, std::size_t alignment,
                     CallResult got, const void* frame) {
  void* const block =
      Resolve({.call = call, .size_bytes = size, .alignment_bytes = alignment},
              got, Disposition::kThrew,
              frame != nullptr ? frame : __builtin_frame_address(0));
  if (block == nullptr) ThrowBadAlloc(size);
  return block;
}

void* ResolveOrNull(Call call, std::size_t size, std::size_t alignment,
                    CallResult got, const void* frame) noexcept {
  constexpr Disposition kGiveUp = Disposition::kReturnedNull;
  const Request request = {
      .call = call, .size_bytes = size, .alignment_bytes = alignment};
  if (frame == nullptr) frame = __builtin_frame_address(0);
  if (!CanCatch()) return Resolve(request, got, kGiveUp, frame);
  try {
    return Resolve(request, got, kGiveUp, frame);
  } catch (...) {
    return nullptr;
  }
}

namespace {

// No handler can help, so none is called.
void FinishForAlignment(std::size_t size, std::size_t alignment, Call call,
                        Disposition disposition, const void* frame) {
  FailedCall failed;
  ProductRecover(
      {.call = call, .size_bytes = size, .alignment_bytes = alignment},
      RefusedAlignment(), frame, failed);
  ProductRecovery().Finish(failed, disposition);
}

}  // namespace

void* ThrowForAlignment(std::size_t size, std::size_t alignment, Call call) {
  FinishForAlignment(size, alignment, call, Disposition::kThrew,
                     __builtin_frame_address(0));
  ThrowBadAlloc(size);
}

void* NullForAlignment(std::size_t size, std::size_t alignment, Call call) {
  FinishForAlignment(size, alignment, call, Disposition::kReturnedNull,
                     __builtin_frame_address(0));
  return nullptr;
}

// As the standard has it, each nothrow form calls the throwing one when the
// program has replaced that, and turns an exception into null. Our own throwing
// forms are not called only to have them throw. Where nothing can be caught,
// nothing is thrown either, unless a new-handler of the program does.
void* NothrowNewSlow(std::size_t size, Call call, bool aligned,
                     std::size_t alignment) noexcept {
  const bool array = call == Call::kNewArrayNothrow;
  if (!ProductOwnsNew(array, aligned) && CanCatch()) {
    const auto given = static_cast<std::align_val_t>(alignment);
    try {
      if (!aligned)
        return array ? ::operator new[](size) : ::operator new(size);
      return array ? ::operator new[](size, given)
                   : ::operator new(size, given);
    } catch (...) {
      return nullptr;
    }
  }
  return IsPowerOfTwo(alignment)
             ? ProductNewOrNull(size, alignment, call, aligned)
             : NullForAlignment(size, alignment, call);
}

}  // namespace hakmem
