#include "benchmarks/traces/converter.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>
#include <vector>

#include "benchmarks/traces/trace_format.h"

namespace hakmem::traces {
namespace {

// Numbers that are free to be used again.
class Numbers {
 public:
  std::uint32_t Take(std::uint32_t thread) {
    std::deque<std::uint32_t>& own = OwnedBy(thread);
    if (own.empty()) Refill(own);
    const std::uint32_t number = own.back();
    own.pop_back();
    return number;
  }

  void Give(std::uint32_t thread, std::uint32_t number) {
    std::deque<std::uint32_t>& own = OwnedBy(thread);
    own.push_back(number);
    if (own.size() > kMostOwned) {
      common_.push_back(own.front());
      own.pop_front();
    }
  }

 private:
  // A thread that only frees must not keep all numbers to itself.
  static constexpr std::size_t kMostOwned = 256;
  // Neighbours share a cache line in the replayer's table.
  static constexpr std::uint32_t kRun = kMaxBlocksPerEvent;

  std::deque<std::uint32_t>& OwnedBy(std::uint32_t thread) {
    if (thread >= owned_.size()) owned_.resize(thread + 1);
    return owned_[thread];
  }

  void Refill(std::deque<std::uint32_t>& own) {
    if (!common_.empty()) {
      own.push_back(common_.front());
      common_.pop_front();
      return;
    }
    for (std::uint32_t i = kRun; i > 0; --i) own.push_back(next_ + i - 1);
    next_ += kRun;
  }

  std::vector<std::deque<std::uint32_t>> owned_;
  std::deque<std::uint32_t> common_;
  std::uint32_t next_ = 0;
};

class Converter {
 public:
  explicit Converter(std::uint64_t max_events) : max_events_(max_events) {}

  bool full() const { return writer_.events() >= max_events_; }

  void Add(const RawRecord& record) {
    switch (record.call) {
      case Call::kMalloc:
        return Allocate(Op::kAllocate, record, record.address);
      case Call::kCalloc:
        return Allocate(Op::kAllocateZeroed, record, record.address);
      case Call::kAligned:
        return Allocate(Op::kAllocateAligned, record, record.address);
      case Call::kRealloc:
        return Reallocate(record);
      case Call::kFree:
        return Free(record, record.address);
    }
  }

  Conversion Finish() const {
    return {.trace = writer_.Finish(),
            .events = writer_.events(),
            .left_out = left_out_};
  }

 private:
  // Threads by their first event that stays.
  std::uint32_t Thread(const RawRecord& record) {
    const auto next = static_cast<std::uint32_t>(threads_.size());
    return threads_.try_emplace(record.thread, next).first->second;
  }

  void Allocate(Op op, const RawRecord& record, std::uint64_t address) {
    const bool aligned = op == Op::kAllocateAligned;
    if (address == 0 || record.size > kMaxSize || !MayAdd(record) ||
        (aligned && !IsAlignment(record.argument))) {
      ++left_out_;
      return;
    }
    // Its release went by another way than the functions that are recorded.
    if (blocks_.contains(address)) Free(record, address);
    if (full()) return;
    const std::uint32_t thread = Thread(record);
    Event event = {.op = op,
                   .thread = thread,
                   .block = numbers_.Take(thread),
                   .size = record.size};
    if (aligned) {
      event.alignment_log2 =
          static_cast<std::uint8_t>(std::countr_zero(record.argument));
    }
    writer_.Add(event);
    blocks_.emplace(address, event.block);
  }

  void Reallocate(const RawRecord& record) {
    const auto old = blocks_.find(record.argument);
    if (record.address == 0) return Free(record, record.argument);
    if (old == blocks_.end()) {
      return Allocate(Op::kAllocate, record, record.address);
    }
    if (record.size > kMaxSize || !MayAdd(record)) {
      ++left_out_;
      return;
    }
    const std::uint32_t block = old->second;
    blocks_.erase(old);
    if (blocks_.contains(record.address)) Free(record, record.address);
    if (full()) return;
    writer_.Add({.op = Op::kReallocate,
                 .thread = Thread(record),
                 .block = block,
                 .size = record.size});
    blocks_.emplace(record.address, block);
  }

  void Free(const RawRecord& record, std::uint64_t address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || !MayAdd(record)) {
      ++left_out_;
      return;
    }
    const std::uint32_t thread = Thread(record);
    writer_.Add({.op = Op::kFree, .thread = thread, .block = found->second});
    numbers_.Give(thread, found->second);
    blocks_.erase(found);
  }

  static bool IsAlignment(std::uint64_t value) {
    return std::has_single_bit(value) && value <= std::uint64_t{1}
                                                      << kMaxAlignmentLog2;
  }

  bool MayAdd(const RawRecord& record) const {
    return threads_.size() < kMaxThreads || threads_.contains(record.thread);
  }

  const std::uint64_t max_events_;
  Writer writer_;
  Numbers numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> threads_;
  std::unordered_map<std::uint64_t, std::uint32_t> blocks_;  // by address
  std::uint64_t left_out_ = 0;
};

}  // namespace

Conversion Convert(std::span<const RawRecord> records,
                   std::uint64_t max_events) {
  Converter converter(max_events);
  for (const RawRecord& record : records) {
    if (converter.full()) break;
    converter.Add(record);
  }
  return converter.Finish();
}

}  // namespace hakmem::traces
