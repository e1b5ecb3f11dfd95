// HugePool: the tree of its blocks.

#include <algorithm>
#include <bit>

#include "allocator/ace/huge_pool.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// The finaliser of MurmurHash3: as good as chance, and the same for a frame
// whenever it is asked.
std::uint32_t PriorityOf(std::uint32_t frame) {
  frame = (frame ^ (frame >> 16)) * 0x85ebca6b;
  frame = (frame ^ (frame >> 13)) * 0xc2b2ae35;
  return frame ^ (frame >> 16);
}

}  // namespace

// The first frame beyond the gap that follows a block.
std::size_t HugePool::NextOf(Frame frame) const {
  const Frame next = records_[frame].next;
  return next == kNone ? window_frames() : next;
}

HugePool::Frame HugePool::GapAfter(Frame frame) const {
  const std::size_t end = EndOf(frame);
  const std::size_t next = NextOf(frame);
  return next > end ? static_cast<Frame>(next - end) : 0;
}

HugePool::Frame HugePool::MaxGap(Frame node) const {
  return node == kNone ? 0 : records_[node].max_gap;
}

void HugePool::SetMaxGap(Frame node) {
  Record& record = records_[node];
  record.max_gap =
      std::max({GapAfter(node), MaxGap(record.left), MaxGap(record.right)});
}

// After the gap behind a block has changed.
void HugePool::Refresh(Frame node) {
  for (; node != kNone; node = records_[node].parent) SetMaxGap(node);
}

void HugePool::ReplaceChild(Frame parent, Frame child, Frame by) {
  (parent == kNone                  ? root_
   : records_[parent].left == child ? records_[parent].left
                                    : records_[parent].right) = by;
  if (by != kNone) records_[by].parent = parent;
}

void HugePool::RotateUp(Frame node) {
  Record& record = records_[node];
  const Frame parent = record.parent;
  Record& above = records_[parent];
  ReplaceChild(above.parent, parent, node);
  Frame& inner = above.left == node ? record.right : record.left;
  (above.left == node ? above.left : above.right) = inner;
  if (inner != kNone) records_[inner].parent = parent;
  inner = parent;
  above.parent = node;
  SetMaxGap(parent);
  SetMaxGap(node);
}

// The list has the block already. Its neighbours there are where it belongs:
// one of them has no child on that side.
void HugePool::Attach(Frame frame) {
  Record& record = records_[frame];
  record.left = record.right = record.parent = kNone;
  record.max_gap = 0;
  if (record.previous != kNone && records_[record.previous].right == kNone) {
    record.parent = record.previous;
    records_[record.parent].right = frame;
  } else if (record.next != kNone) {
    record.parent = record.next;
    records_[record.parent].left = frame;
  } else {
    root_ = frame;
  }
  while (record.parent != kNone &&
         PriorityOf(frame) > PriorityOf(record.parent)) {
    RotateUp(frame);
  }
  Refresh(frame);
  Refresh(record.previous);
}

// The list no longer has the block.
void HugePool::Detach(Frame frame) {
  const Record& record = records_[frame];
  while (record.left != kNone || record.right != kNone) {
    const bool left = record.right == kNone ||
                      (record.left != kNone &&
                       PriorityOf(record.left) > PriorityOf(record.right));
    RotateUp(left ? record.left : record.right);
  }
  ReplaceChild(record.parent, frame, kNone);
  Refresh(record.parent);
  Refresh(record.previous);
}

// The last block that starts at or before `frame`, or kNone.
HugePool::Frame HugePool::LastFrom(Frame frame) const {
  Frame found = kNone;
  for (Frame node = root_; node != kNone;) {
    if (node <= frame) found = node;
    node = node <= frame ? records_[node].right : records_[node].left;
  }
  return found;
}

// The first block after the one at `frame` that is followed by so long a gap.
HugePool::Frame HugePool::NextFit(Frame frame, std::size_t frames) const {
  Frame node = frame;
  if (MaxGap(records_[node].right) >= frames) {
    node = records_[node].right;
  } else {
    // Up, to the first one of which this was the left side.
    for (;;) {
      const Frame parent = records_[node].parent;
      if (parent == kNone) return kNone;
      const bool was_left = records_[parent].left == node;
      node = parent;
      if (!was_left) continue;
      if (GapAfter(node) >= frames) return node;
      if (MaxGap(records_[node].right) >= frames) {
        node = records_[node].right;
        break;
      }
    }
  }
  // Down, to the first one of this side.
  for (;;) {
    const Record& record = records_[node];
    if (MaxGap(record.left) >= frames) {
      node = record.left;
    } else if (GapAfter(node) >= frames) {
      return node;
    } else {
      node = record.right;
    }
  }
}

void HugePool::CheckTree() const {
  unsigned blocks = 0;
  unsigned depth = 0;
  for (Frame frame = first_; frame != kNone; frame = records_[frame].next) {
    const Record& record = records_[frame];
    ++blocks;
    unsigned above = 0;
    for (Frame node = record.parent; node != kNone;
         node = records_[node].parent) {
      ++above;
    }
    depth = std::max(depth, above);
    HAK_CHECK_EQ(LastFrom(frame), frame);  // HU3
    HAK_CHECK_EQ(record.max_gap, std::max({GapAfter(frame), MaxGap(record.left),
                                           MaxGap(record.right)}));  // HU3
    if (record.parent != kNone) {
      HAK_CHECK_LE(PriorityOf(frame), PriorityOf(record.parent));  // HU3
    }
  }
  // Chance gives about three times the logarithm.
  HAK_CHECK_LE(depth, 6U * static_cast<unsigned>(std::bit_width(blocks)));
}

}  // namespace hakmem
