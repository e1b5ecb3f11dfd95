#include "allocator/guards/guarded_blocks.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/lookup/lookup.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/process.h"
#include "allocator/reports/fatal.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_text.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/unwinder.h"

namespace hakmem {

void GuardedBlocks::Start(const HeapOptions& options, Region::Window window) {
  unwinding_ = static_cast<Unwinding>(options.unwind);
  if (options.guard_sample == 0) return;
  page_bytes_ = memory_.PageBytes();
  const std::size_t slot_bytes = RoundUp(kMaxBytes, page_bytes_);
  stride_bytes_ = slot_bytes + page_bytes_;
  // In a small address space there is room for fewer.
  const std::size_t most = window.bytes / (2 * (stride_bytes_ + sizeof(Slot)));
  slot_count_ = static_cast<SlotIndex>(
      std::min<std::uint64_t>(options.guard_slots, most));
  slots_.Place(window.begin, TableBytes(), /*colour_bytes=*/0);
  pool_ = window.begin + RoundUp(TableBytes() + page_bytes_, kSuperSlabBytes);
}

bool GuardedBlocks::Map() {
  if (slot_count_ == 0) return false;
  const FutexLockHolder hold(lock_);
  if (on()) return true;
  const std::size_t pool_bytes = slot_count_ * stride_bytes_ + page_bytes_;
  map_calls_.fetch_add(1, std::memory_order_relaxed);
  // The longest first, as each sample may be refused.
  if (!memory_.Reserve(pool_, pool_bytes).ok()) return false;
  if (!slots_.EnsureMapped(memory_, TableBytes()).ok()) {
    memory_.Unmap(pool_, pool_bytes);
    return false;
  }
  secret_ = memory_.Random();
  // release: pairs with the acquire in Contains and on.
  pool_bytes_.store(pool_bytes, std::memory_order_release);
  return true;
}

auto GuardedBlocks::TakeSlot() -> SlotIndex {
  const FutexLockHolder hold(lock_);
  for (;;) {
    SlotIndex index = first_;
    if (unused_ < slot_count_) {
      index = unused_++;
    } else if (index == kNoSlot) {
      return kNoSlot;
    } else {
      first_ = At(index).next;
      if (first_ == kNoSlot) last_ = kNoSlot;
    }
    Slot& slot = At(index);
    const bool lost = slot.misused.load(std::memory_order_relaxed);
    slot.state.store(lost ? State::kLost : State::kBusy,
                     std::memory_order_relaxed);
    if (!lost) return index;
  }
}

void GuardedBlocks::PutSlot(SlotIndex index) {
  const FutexLockHolder hold(lock_);
  At(index).next = kNoSlot;
  // release: pairs with the acquire in IsBlock.
  At(index).state.store(State::kFree, std::memory_order_release);
  (last_ == kNoSlot ? first_ : At(last_).next) = index;
  last_ = index;
}

// Eight bytes that nobody can guess, over and over.
std::uint8_t GuardedBlocks::CanaryByte(Address address) const {
  return static_cast<std::uint8_t>(secret_ >> (8 * (address % 8)));
}

Address GuardedBlocks::CanaryBegin(const Slot& slot) {
  return std::max(slot.pages, slot.start - kMaxCanaryBytes);
}

Address GuardedBlocks::CanaryEnd(const Slot& slot) {
  return std::min(slot.pages + slot.pages_bytes,
                  slot.start + slot.size_bytes + kMaxCanaryBytes);
}

void GuardedBlocks::FillCanary(const Slot& slot) const {
  const auto fill = [this](Address from, Address to) {
    for (; from < to; ++from) {
      *reinterpret_cast<std::uint8_t*>(from) = CanaryByte(from);
    }
  };
  fill(CanaryBegin(slot), slot.start);
  fill(slot.start + slot.size_bytes, CanaryEnd(slot));
}

// The nearest to the block.
Address GuardedBlocks::FindDamage(const Slot& slot) const {
  const auto is_whole = [this](Address at) {
    return *reinterpret_cast<const std::uint8_t*>(at) == CanaryByte(at);
  };
  const Address end = CanaryEnd(slot);
  for (Address at = slot.start + slot.size_bytes; at < end; ++at) {
    if (!is_whole(at)) return at;
  }
  for (Address at = slot.start; at > CanaryBegin(slot); --at) {
    if (!is_whole(at - 1)) return at - 1;
  }
  return 0;
}

void* GuardedBlocks::Allocate(std::size_t size_bytes,
                              std::size_t alignment_bytes,
                              std::uint32_t random) {
  if (paused() || size_bytes > kMaxBytes || alignment_bytes > page_bytes_)
    return nullptr;
  if (!on() && !Map()) return nullptr;
  const SlotIndex index = TakeSlot();
  if (index == kNoSlot) return nullptr;
  const bool left = size_bytes != 0 && random % 2 != 0;
  const std::size_t bytes =
      RoundUp(std::max<std::size_t>(size_bytes, 1), page_bytes_);
  Address pages = SlotAddress(index);
  if (!left) pages += stride_bytes_ - page_bytes_ - bytes;
  if (!memory_.Unprotect(pages, bytes).ok()) {
    PutSlot(index);
    return nullptr;
  }
  Slot& slot = At(index);
  if (slot.dirty) std::memset(reinterpret_cast<void*>(pages), 0, bytes);
  slot.pages = pages;
  slot.pages_bytes = bytes;
  slot.start = left ? pages
                    : RoundDown(pages + bytes - size_bytes,
                                std::max(alignment_bytes, kMinAlignmentBytes));
  slot.size_bytes = size_bytes;
  FillCanary(slot);
  slot.kind = BlockKind::kMalloc;
  slot.allocation.count = 0;
  slot.allocated_by = KnownThreadId();
  slot.freed_by = 0;
  slot.free.count = 0;
  live_blocks_.fetch_add(1, std::memory_order_relaxed);
  live_bytes_.fetch_add(size_bytes, std::memory_order_relaxed);
  // release: pairs with the acquire in IsBlock.
  slot.state.store(State::kLive, std::memory_order_release);
  return reinterpret_cast<void*>(slot.start);
}

void GuardedBlocks::SetKind(const void* pointer, BlockKind kind) {
  At(SlotOf(pointer)).kind = kind;
}

void GuardedBlocks::Finish(const void* block, const void* left,
                           const BlockReport& call, const void* frame) {
  if (!Contains(block) && !Contains(left)) return;
  CallStack stack;
  CaptureCallers(unwinding_, frame, stack);
  if (Contains(block)) At(SlotOf(block)).allocation = stack;
  if (Contains(left)) Free(call, stack);
}

bool GuardedBlocks::IsBlock(SlotIndex index) const {
  // acquire: pairs with the releases in Allocate, Free and PutSlot.
  const State state = At(index).state.load(std::memory_order_acquire);
  return state != State::kUnused && state != State::kBusy &&
         At(index).start != 0;
}

auto GuardedBlocks::FindSlot(Address address) const -> SlotIndex {
  const Address offset = address - pool_;
  const auto index = static_cast<SlotIndex>(offset / stride_bytes_);
  const bool in_guard = offset % stride_bytes_ < page_bytes_;
  const bool after = index < slot_count_ && IsBlock(index);
  const bool before = in_guard && index > 0 && IsBlock(index - 1);
  if (!before) return after ? index : kNoSlot;
  if (!after) return index - 1;
  const Slot& left = At(index - 1);
  const Address beyond = address - (left.start + left.size_bytes);
  return beyond <= At(index).start - address ? index - 1 : index;
}

bool GuardedBlocks::FindLiveInPool(const void* pointer,
                                   LiveBlock& block) const {
  const auto address = reinterpret_cast<Address>(pointer);
  const SlotIndex index = FindSlot(address);
  if (index == kNoSlot || At(index).start != address ||
      At(index).state.load(std::memory_order_relaxed) != State::kLive) {
    return false;
  }
  const std::size_t bytes = At(index).size_bytes;
  block.guarded = true;
  block.usable_bytes = bytes;
  block.size_bytes = bytes;
  block.kind = At(index).kind;
  block.route = bytes <= kMaxTinyBytes ? Route::kTiny : Route::kPool;
  block.size_class = kClassCount;
  block.asked_class = kClassCount;
  return true;
}

GuardedBlockFacts GuardedBlocks::FactsOf(SlotIndex index) const {
  const Slot& slot = At(index);
  // acquire: pairs with the releases in Free and PutSlot.
  const State state = slot.state.load(std::memory_order_acquire);
  const bool freed = state != State::kLive;
  GuardedBlockFacts facts = {
      .start = slot.start,
      .size_bytes = slot.size_bytes,
      .freed = freed,
      .history = {{true, slot.allocated_by, slot.allocation}, {}}};
  if (freed && state != State::kFreeing) {
    facts.history.release = {true, slot.freed_by, slot.free};
  }
  DropOwnFrames(facts.history.allocation.stack);
  DropOwnFrames(facts.history.release.stack);
  return facts;
}

void GuardedBlocks::Free(const BlockReport& call, const void* frame) {
  CallStack stack;
  CaptureCallers(unwinding_, frame, stack);
  Free(call, stack);
}

void GuardedBlocks::Free(const BlockReport& call, const CallStack& stack) {
  const auto address = reinterpret_cast<Address>(call.pointer);
  const SlotIndex index = FindSlot(address);
  State live = State::kLive;
  // One of two threads that free a block at once finds it freed.
  // acquire: pairs with the release in Allocate.
  if (index == kNoSlot || At(index).start != address ||
      !At(index).state.compare_exchange_strong(live, State::kFreeing,
                                               std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
    ReportMisuse(call);
    return;
  }
  Slot& slot = At(index);
  if (FindDamage(slot) != 0) [[unlikely]] {
    // release: pairs with the acquire in IsBlock.
    slot.state.store(State::kLive, std::memory_order_release);
    ReportDamage(call);
    return;
  }
  live_blocks_.fetch_sub(1, std::memory_order_relaxed);
  live_bytes_.fetch_sub(slot.size_bytes, std::memory_order_relaxed);
  slot.free = stack;
  slot.freed_by = KnownThreadId();
  // Before its pages cannot be accessed: who still does is told who has freed
  // it. release: pairs with the acquires in IsBlock and FactsOf.
  slot.state.store(State::kFreed, std::memory_order_release);
  // Protected first: what is written in between would be taken for zero.
  slot.dirty |= !memory_.Protect(slot.pages, slot.pages_bytes).ok();
  purge_calls_.fetch_add(1, std::memory_order_relaxed);
  slot.dirty |= !memory_.Purge(slot.pages, slot.pages_bytes).ok();
  PutSlot(index);
}

// Another thread may have freed the block meanwhile, and the slot be another's.
bool GuardedBlocks::IsIntact(const void* pointer) const {
  const SlotIndex index = SlotOf(pointer);
  return index == kNoSlot || FindDamage(At(index)) == 0;
}

void GuardedBlocks::Shrink(const void* pointer, std::size_t size_bytes) {
  Slot& slot = At(SlotOf(pointer));
  HAK_CHECK_LE(size_bytes, slot.size_bytes);
  live_bytes_.fetch_sub(slot.size_bytes - size_bytes,
                        std::memory_order_relaxed);
  slot.size_bytes = size_bytes;
  FillCanary(slot);
}

void GuardedBlocks::ReportMisuse(BlockReport call) const {
  const auto address = reinterpret_cast<Address>(call.pointer);
  const SlotIndex index = FindSlot(address);
  const GuardedBlockFacts facts =
      index == kNoSlot ? GuardedBlockFacts() : FactsOf(index);
  call.guarded = &facts;
  if (index != kNoSlot && address == facts.start) {
    FatalFreedBlock(call, "free");
  } else if (address - facts.start < facts.size_bytes) {
    FatalInteriorPointer(call, reinterpret_cast<const void*>(facts.start),
                         !facts.freed);
  } else {
    FatalNotABlock(call);
  }
}

void GuardedBlocks::ReportDamage(const BlockReport& call) {
  const SlotIndex index = SlotOf(call.pointer);
  At(index).misused.store(true, std::memory_order_relaxed);
  Report(ReportGuardDamage, call, FindDamage(At(index)));
}

FaultVerdict GuardedBlocks::ReportFault(const Fault& fault,
                                        const char* variant) {
  const auto* const pointer = reinterpret_cast<const void*>(fault.address);
  if (!fault.has_address || !Contains(pointer)) return FaultVerdict::kUnknown;
  const SlotIndex index = FindSlot(fault.address);
  const bool told = fault.has_stack ? TellFault(fault, index, variant)
                                    : TellFaultShortly(fault, index);
  if (!told) return FaultVerdict::kUnknown;
  return CurrentOnMisuse() == OnMisuse::kLog && Open(index, fault.address)
             ? FaultVerdict::kMended
             : FaultVerdict::kExplained;
}

HAK_NOINLINE bool GuardedBlocks::TellFault(const Fault& fault, SlotIndex index,
                                           const char* variant) const {
  BlockReport report = {.pointer = reinterpret_cast<const void*>(fault.address),
                        .variant = variant};
  GuardedBlockFacts facts;
  if (index != kNoSlot) {
    facts = FactsOf(index);
    const bool inside = fault.address - facts.start < facts.size_bytes;
    if (inside && !facts.freed) return false;
    report.guarded = &facts;
  }
  CallStack access;
  UnwindAt(fault.place, access);
  ReportGuardFault(fault, report, access);
  return true;
}

bool GuardedBlocks::TellFaultShortly(const Fault& fault,
                                     SlotIndex index) const {
  if (index != kNoSlot) {
    const Slot& slot = At(index);
    // acquire: pairs with the releases in Free and PutSlot.
    const bool live =
        slot.state.load(std::memory_order_acquire) == State::kLive;
    if (live && fault.address - slot.start < slot.size_bytes) return false;
  }
  if (CurrentOnMisuse() != OnMisuse::kLog) {
    WriteWarning(
        "hakmem: fatal: access to a guarded block; the stack for signal "
        "handlers (sigaltstack) is too small for a report");
  } else if (IsReported(CountMisuse(fault.place.instruction))) {
    WriteWarning(
        "hakmem: misuse: access to a guarded block; the stack for signal "
        "handlers (sigaltstack) is too small for a report");
  }
  return true;
}

// The page's own slot may be another than the nearest block's.
bool GuardedBlocks::Open(SlotIndex nearest, Address address) {
  const auto own = static_cast<SlotIndex>((address - pool_) / stride_bytes_);
  for (const SlotIndex index : {nearest, std::min(own, slot_count_ - 1)}) {
    if (index == kNoSlot) continue;
    At(index).misused.store(true, std::memory_order_relaxed);
  }
  return memory_.Unprotect(RoundDown(address, page_bytes_), page_bytes_).ok();
}

void GuardedBlocks::CheckInvariants() {
  if (!on()) return;
  const FutexLockHolder hold(lock_);
  SlotIndex queued = 0;
  for (SlotIndex index = first_; index != kNoSlot; index = At(index).next) {
    HAK_CHECK(At(index).state.load(std::memory_order_relaxed) ==
              State::kFree);  // GB1
    HAK_CHECK(At(index).next != kNoSlot || index == last_);
    ++queued;
  }
  for (SlotIndex index = 0; index < slot_count_; ++index) {
    const Slot& slot = At(index);
    const State state = slot.state.load(std::memory_order_relaxed);
    HAK_CHECK(state != State::kBusy && state != State::kFreeing &&
              state != State::kFreed);  // GB1
    HAK_CHECK_EQ(state == State::kUnused, index >= unused_);
    if (state == State::kFree) --queued;
    if (state != State::kLive) continue;
    HAK_CHECK(IsAligned(slot.start, kMinAlignmentBytes));  // GB3
    HAK_CHECK_GE(slot.start, slot.pages);
    HAK_CHECK_LE(slot.start + slot.size_bytes, slot.pages + slot.pages_bytes);
    HAK_CHECK_GE(slot.pages, SlotAddress(index));
    HAK_CHECK_LE(slot.pages + slot.pages_bytes,
                 SlotAddress(index) + stride_bytes_ - page_bytes_);
    HAK_CHECK(slot.misused.load(std::memory_order_relaxed) ||
              FindDamage(slot) == 0);
  }
  HAK_CHECK_EQ(queued, 0u);  // GB1
}

}  // namespace hakmem
