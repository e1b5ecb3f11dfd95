#include "tools/hakmem/trace_blocks.h"

#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/call_trace/call_trace_format.h"
#include "tools/hakmem/trace_bytes.h"

namespace hakmem::tools {
namespace {

using call_trace::BlockType;
using call_trace::kBlockHeaderBytes;
using call_trace::kChecksumOffset;
using Bytes8 = std::span<const std::uint8_t>;

std::uint32_t LittleEndian(Bytes8 bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

std::uint32_t Crc(Bytes8 header, Bytes8 payload) {
  uLong crc = crc32(0, header.data(), static_cast<uInt>(header.size()));
  crc = crc32(crc, payload.data(), static_cast<uInt>(payload.size()));
  return static_cast<std::uint32_t>(crc);
}

std::vector<std::string> ReadNames(ByteReader& in) {
  std::vector<std::string> names(in.Count());
  for (std::string& name : names) name = in.Text();
  return names;
}

// Why a block can't be used; empty if it can.
using Complaint = std::string;

class BlockReader {
 public:
  explicit BlockReader(Bytes8 file) : file_(file) {}

  absl::StatusOr<TraceBlocks> Read() {
    while (at_ < file_.size()) {
      if (!ReadBlock()) Resynchronize();
    }
    if (used_ == 0) {
      return absl::InvalidArgumentError(
          file_.empty()  ? "it is empty"
          : other_trace_ ? blocks_.damage.notes().front()
                         : "it is not a call trace of hakmem");
    }
    return std::move(blocks_);
  }

 private:
  // The block at at_; false: there is none.
  bool ReadBlock() {
    const Bytes8 rest = file_.subspan(at_);
    if (!BeginsBlock(rest)) return false;
    const std::uint32_t length = LittleEndian(rest.subspan(8, 4));
    if (length > rest.size() - kBlockHeaderBytes) return false;
    const Bytes8 payload = rest.subspan(kBlockHeaderBytes, length);
    if (LittleEndian(rest.subspan(kChecksumOffset, 4)) !=
        Crc(rest.first(kChecksumOffset), payload)) {
      return false;
    }
    const Complaint complaint = Use(rest[4], payload);
    if (complaint.empty()) {
      ++used_;
    } else {
      blocks_.damage.Add(
          kBlockHeaderBytes + length,
          absl::StrCat("the block at byte ", at_, " ", complaint));
    }
    at_ += kBlockHeaderBytes + length;
    return true;
  }

  static bool BeginsBlock(Bytes8 bytes) {
    return bytes.size() >= kBlockHeaderBytes &&
           std::equal(std::begin(call_trace::kBlockMagic),
                      std::end(call_trace::kBlockMagic), bytes.begin()) &&
           LittleEndian(bytes.subspan(8, 4)) <= call_trace::kMaxPayloadBytes;
  }

  // To the next place at which a block may begin.
  void Resynchronize() {
    const std::size_t from = at_;
    const auto* magic = std::begin(call_trace::kBlockMagic);
    const auto found =
        std::search(file_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                    file_.end(), magic, std::end(call_trace::kBlockMagic));
    at_ = static_cast<std::size_t>(found - file_.begin());
    // One sentence for what lies between two blocks that can be used.
    if (from == damage_end_) {
      damage_end_ = at_;
      blocks_.damage.Add(at_ - from, "");
      return;
    }
    damage_end_ = at_;
    const bool cut = at_ == file_.size() && BeginsBlock(file_.subspan(from)) &&
                     LittleEndian(file_.subspan(from + 8, 4)) >
                         file_.size() - from - kBlockHeaderBytes;
    blocks_.damage.Add(
        at_ - from,
        cut ? absl::StrCat("the last block, at byte ", from, ", is cut short")
            : absl::StrCat("there is no whole block at byte ", from));
  }

  Complaint Use(std::uint8_t type, Bytes8 payload) {
    ByteReader in(payload);
    switch (static_cast<BlockType>(type)) {
      case BlockType::kStart:
        return UseStart(in);
      case BlockType::kThread:
        return UseThread(in);
      case BlockType::kEvents:
        return UseEvents(in);
      case BlockType::kModules:
        return UseModules(in);
      case BlockType::kEnd:
        return UseEnd(in);
    }
    return absl::StrCat("is of the unknown type ", type);
  }

  Complaint UseStart(ByteReader& in) {
    if (blocks_.start.has_value()) {
      other_trace_ = true;
      return "begins another trace, which is not read";
    }
    const std::uint64_t version = in.Varint();
    if (version != call_trace::kFormatVersion) {
      other_trace_ = true;
      return absl::StrCat("is of version ", version,
                          " of the format, which this program can't read");
    }
    TraceFacts facts;
    facts.process_id = in.Varint();
    facts.monotonic_ns = in.Varint();
    facts.wall_clock_ns = in.Varint();
    facts.sample = std::max<std::uint64_t>(in.Varint(), 1);
    facts.has_stacks = (in.Varint() & call_trace::kStartHasStacks) != 0;
    facts.program = in.Text();
    facts.version = in.Text();
    facts.variant = in.Text();
    facts.max_tiny_bytes = in.Varint();
    facts.max_pool_bytes = in.Varint();
    facts.max_span_bytes = in.Varint();
    facts.unit_bytes = std::max<std::uint64_t>(in.Varint(), 1);
    facts.page_bytes = std::max<std::uint64_t>(in.Varint(), 1);
    facts.class_bytes.resize(in.Count());
    for (std::uint32_t& bytes : facts.class_bytes) {
      bytes = static_cast<std::uint32_t>(in.Varint());
    }
    facts.calls = ReadNames(in);
    facts.reasons = ReadNames(in);
    facts.details = ReadNames(in);
    facts.dispositions = ReadNames(in);
    if (!in.ok()) return "has a start that ends too early";
    blocks_.start = std::move(facts);
    return {};
  }

  Complaint UseThread(ByteReader& in) {
    if (other_trace_) return kOtherTrace;
    const std::uint64_t number = in.Varint();
    TraceThreadFacts facts;
    facts.thread_id = in.Varint();
    facts.name = in.Text();
    facts.calls = in.Varint();
    facts.recorded = in.Varint();
    facts.dropped = in.Varint();
    if (!in.ok()) return "has a thread that ends too early";
    blocks_.threads[number] = std::move(facts);
    return {};
  }

  Complaint UseEvents(ByteReader& in) {
    if (other_trace_) return kOtherTrace;
    const std::uint64_t number = in.Varint();
    TracePiece piece;
    piece.chunk = in.Varint();
    piece.offset = in.Varint();
    const std::uint64_t calls = in.Varint();
    const std::uint64_t dropped = in.Varint();
    if (!in.ok()) return "has events that end too early";
    piece.bytes = in.rest();
    blocks_.events[number].push_back(piece);
    // Until a later block of the thread says more.
    TraceThreadFacts& facts = blocks_.threads[number];
    facts.calls = std::max(facts.calls, calls);
    facts.dropped = std::max(facts.dropped, dropped);
    return {};
  }

  Complaint UseModules(ByteReader& in) {
    if (other_trace_) return kOtherTrace;
    while (in.ok() && !in.rest().empty()) {
      TraceModule module;
      module.begin = in.Varint();
      module.bytes = in.Varint();
      module.file_offset = in.Varint();
      module.base = in.Varint();
      module.build_id = in.Text();
      module.path = in.Text();
      if (in.ok()) blocks_.modules[module.begin] = std::move(module);
    }
    return in.ok() ? Complaint() : "has modules that end too early";
  }

  Complaint UseEnd(ByteReader& in) {
    if (other_trace_) return kOtherTrace;
    TraceEnd end;
    end.time_ns = in.Varint();
    end.calls = in.Varint();
    end.recorded = in.Varint();
    end.dropped = in.Varint();
    end.signal = in.Varint();
    if (!in.ok()) return "has an end that ends too early";
    blocks_.end = end;
    return {};
  }

  static constexpr const char* kOtherTrace = "belongs to another trace";

  Bytes8 file_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  std::size_t damage_end_ = ~std::size_t{0};
  bool other_trace_ = false;
  TraceBlocks blocks_;
};

}  // namespace

std::string NameOf(const std::vector<std::string>& names, std::size_t number) {
  if (number < names.size() && !names[number].empty()) return names[number];
  return absl::StrCat("number ", number);
}

void TraceDamage::Add(std::uint64_t bytes, std::string note) {
  bytes_ += bytes;
  if (note.empty()) return;
  ++places_;
  if (notes_.size() < kMaxNotes) notes_.push_back(std::move(note));
}

const TraceFacts& TraceBlocks::facts() const {
  static const TraceFacts* const kNone = new TraceFacts;
  return start.has_value() ? *start : *kNone;
}

absl::StatusOr<TraceBlocks> ReadTraceBlocks(Bytes8 file) {
  return BlockReader(file).Read();
}

}  // namespace hakmem::tools
