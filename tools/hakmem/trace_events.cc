#include "tools/hakmem/trace_events.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/call_trace/call_trace_format.h"
#include "tools/hakmem/trace_bytes.h"

namespace hakmem::tools {
namespace {

using call_trace::UnZigZag;

// The events of one thread.
class ThreadCursor {
 public:
  ThreadCursor(std::uint64_t thread, const std::vector<TracePiece>& pieces,
               TraceStacks& stacks, TraceDamage& damage)
      : thread_(thread), pieces_(pieces), stacks_(stacks), damage_(damage) {}

  // False: there are no more.
  bool Next() {
    for (;;) {
      if (in_.rest().empty() && !OpenPiece()) return false;
      const std::size_t before = in_.rest().size();
      if (in_.rest().front() == call_trace::kEndOfChunk) {
        in_ = ByteReader({});
        continue;
      }
      if (Decode()) return true;
      damage_.Add(before, absl::StrCat("thread ", thread_, ", chunk ", chunk_,
                                       ": an event that can't be read; the "
                                       "chunk's rest is left out"));
      in_ = ByteReader({});
      expected_offset_ = kNowhere;
    }
  }

  const CallEvent& event() const { return event_; }
  // Never goes back, although calls that allocate inside of others do.
  std::uint64_t order_ns() const { return order_ns_; }

 private:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  bool OpenPiece() {
    while (next_piece_ < pieces_.size()) {
      const TracePiece& piece = pieces_[next_piece_++];
      if (piece.offset == 0) {
        chunk_ = piece.chunk;
        time_ns_ = 0;
        address_ = 0;
        chunk_stacks_.clear();
      } else if (piece.chunk != chunk_ || piece.offset != expected_offset_) {
        if (piece.bytes.empty()) continue;
        damage_.Add(piece.bytes.size(),
                    absl::StrCat("thread ", thread_, ", chunk ", piece.chunk,
                                 ": events that need what is missing before "
                                 "them"));
        continue;
      }
      expected_offset_ = piece.offset + piece.bytes.size();
      in_ = ByteReader(piece.bytes);
      if (!piece.bytes.empty()) return true;
    }
    return false;
  }

  bool Decode() {
    const std::uint8_t first = in_.Byte();
    const std::uint8_t operation = first & call_trace::kOperationMask;
    event_ = {.thread = thread_};
    time_ns_ += UnZigZag(in_.Varint());
    event_.time_ns = time_ns_;
    if (operation != call_trace::kFailure) {
      address_ += UnZigZag(in_.Varint());
      event_.address = address_ << call_trace::kAddressShift;
    }
    if (operation >= call_trace::kFailure) event_.size = in_.Varint();
    if ((first & call_trace::kHasAlignment) != 0) {
      const std::uint8_t log2 = in_.Byte();
      if (log2 >= 64) return false;
      event_.alignment = std::uint64_t{1} << log2;
    }
    switch (operation) {
      case call_trace::kFree:
        event_.kind = CallEvent::Kind::kFree;
        break;
      case call_trace::kReallocFrom:
        event_.kind = CallEvent::Kind::kReallocFrom;
        break;
      case call_trace::kFailure:
        event_.kind = CallEvent::Kind::kFailure;
        event_.call = in_.Byte();
        event_.reason = in_.Byte();
        event_.detail = in_.Byte();
        event_.disposition = in_.Byte();
        event_.attempts = in_.Varint();
        break;
      default:
        event_.kind = CallEvent::Kind::kAllocate;
        event_.call = operation - call_trace::kAllocate;
        event_.linked = (first & call_trace::kLinked) != 0;
    }
    if ((first & call_trace::kHasStack) != 0 && !DecodeStack()) return false;
    order_ns_ = std::max(order_ns_, time_ns_);
    return in_.ok();
  }

  bool DecodeStack() {
    const std::uint64_t number = in_.Varint();
    if (number < chunk_stacks_.size()) {
      event_.stack = chunk_stacks_[number];
      return true;
    }
    const std::size_t count = in_.Count();
    if (number != chunk_stacks_.size() || count > call_trace::kMaxFrames) {
      return false;
    }
    std::vector<std::uint64_t> addresses(count);
    std::uint64_t last = 0;
    for (std::uint64_t& address : addresses) {
      last += UnZigZag(in_.Varint());
      address = last;
    }
    if (!in_.ok()) return false;
    event_.stack = stacks_.Add(std::move(addresses));
    chunk_stacks_.push_back(event_.stack);
    return true;
  }

  const std::uint64_t thread_;
  const std::vector<TracePiece>& pieces_;
  TraceStacks& stacks_;
  TraceDamage& damage_;

  std::size_t next_piece_ = 0;
  ByteReader in_{{}};
  std::uint64_t chunk_ = kNowhere;
  std::uint64_t expected_offset_ = kNowhere;
  // What the chunk's events refer back to.
  std::uint64_t time_ns_ = 0;
  std::uint64_t address_ = 0;
  std::vector<StackId> chunk_stacks_;

  CallEvent event_;
  std::uint64_t order_ns_ = 0;
};

}  // namespace

StackId TraceStacks::Add(std::vector<std::uint64_t> addresses) {
  const auto found = ids_.find(addresses);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<StackId>(all_.size());
  all_.push_back(std::move(addresses));
  ids_.emplace(all_.back(), id);
  return id;
}

void ReadTraceEvents(TraceBlocks& blocks, TraceStacks& stacks,
                     const std::function<void(const CallEvent&)>& use) {
  std::vector<ThreadCursor> cursors;
  cursors.reserve(blocks.events.size());
  // Time, releases before allocations, then anything that is always the same.
  using Turn = std::tuple<std::uint64_t, bool, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  const auto enqueue = [&](std::size_t index) {
    ThreadCursor& cursor = cursors[index];
    if (!cursor.Next()) return;
    turns.emplace(cursor.order_ns(),
                  cursor.event().kind == CallEvent::Kind::kAllocate, index);
  };
  for (const auto& [thread, pieces] : blocks.events) {
    cursors.emplace_back(thread, pieces, stacks, blocks.damage);
    enqueue(cursors.size() - 1);
  }
  while (!turns.empty()) {
    const std::size_t index = std::get<2>(turns.top());
    turns.pop();
    use(cursors[index].event());
    enqueue(index);
  }
}

}  // namespace hakmem::tools
