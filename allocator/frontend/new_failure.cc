// `operator new` when memory is short. Compiled with exceptions, because the
// new-handler may throw, and the event must be complete all the same. What that
// needs of a C++ runtime is weak.

#include <cstddef>

#include "allocator/frontend/current_product.h"
#include "allocator/frontend/new_handler.h"
#include "allocator/frontend/weak_runtime.h"

namespace hakmem {
namespace {

// Finishes the event if the new-handler throws. Without a runtime that hakmem
// can see, nothing is run when a stack unwinds; then the event stays pending.
class HandlerCall {
 public:
  HandlerCall(FailedCall& failed, Disposition if_thrown)
      : failed_(failed), if_thrown_(if_thrown) {}
  ~HandlerCall() {
    if (!returned_) ProductFinish(failed_, if_thrown_);
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
void* Resolve(Call call, Disposition give_up, const void* frame) {
  FailedCall failed;
  void* block = ProductRecover(call, frame, failed);
  while (block == nullptr) {
    const NewHandler handler = CurrentNewHandler();
    if (handler == nullptr) {
      ProductFinish(failed, give_up);
      return nullptr;
    }
    ProductAnnounce(failed);
    HandlerCall(failed, give_up).Run(handler);
    block = ProductTryAgain(failed);
    if (block != nullptr) {
      ProductFinish(failed, Disposition::kServedAfterNewHandler);
    }
  }
  ProductTraceRecovered(failed, block, frame);
  return block;
}

}  // namespace

// Without a frame both are called last, so that operators jump here and their
// caller is ours.

void* ResolveOrThrow(Call call, std::size_t size, const void* frame) {
  void* const block =
      Resolve(call, Disposition::kThrew,
              frame != nullptr ? frame : __builtin_frame_address(0));
  if (block == nullptr) ThrowBadAlloc(size);
  return block;
}

void* ResolveOrNull(Call call, const void* frame) noexcept {
  constexpr Disposition kGiveUp = Disposition::kReturnedNull;
  if (frame == nullptr) frame = __builtin_frame_address(0);
  if (!CanCatch()) return Resolve(call, kGiveUp, frame);
  try {
    return Resolve(call, kGiveUp, frame);
  } catch (...) {
    return nullptr;
  }
}

// No handler can help, so none is called.
void* ThrowForAlignment(std::size_t size, std::size_t alignment, Call call) {
  ProductRefuseAlignment(size, alignment);
  FailedCall failed;
  ProductRecover(call, __builtin_frame_address(0), failed);
  ProductFinish(failed, Disposition::kThrew);
  ThrowBadAlloc(size);
}

void* NullForAlignment(std::size_t size, std::size_t alignment, Call call) {
  ProductRefuseAlignment(size, alignment);
  FailedCall failed;
  ProductRecover(call, __builtin_frame_address(0), failed);
  ProductFinish(failed, Disposition::kReturnedNull);
  return nullptr;
}

}  // namespace hakmem
