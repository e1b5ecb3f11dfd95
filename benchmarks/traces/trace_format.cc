#include "benchmarks/traces/trace_format.h"

#include <algorithm>
#include <cstring>

namespace hakmem::traces {
namespace {

constexpr std::uint8_t kOpMask = 7;
constexpr std::uint8_t kThreadFollows = 8;

void AppendVarint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendLittleEndian(std::uint64_t value, std::string& out) {
  for (int byte = 0; byte < 8; ++byte) {
    out.push_back(static_cast<char>(value >> (8 * byte)));
  }
}

std::uint64_t LittleEndian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t byte = 0; byte < 8; ++byte) {
    value |= std::uint64_t{bytes[byte]} << (8 * byte);
  }
  return value;
}

std::span<const std::uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::uint64_t Checksum(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

Reader::Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {
  if (bytes.size() < kChecksummedBegin ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    Fail("not an allocation trace");
    return;
  }
  const std::uint64_t sum =
      LittleEndian(bytes.subspan(kChecksumBegin, sizeof(std::uint64_t)));
  rest_ = bytes.subspan(kChecksummedBegin);
  if (Checksum(rest_) != sum) {
    Fail("damaged or cut short: the checksum does not match");
    return;
  }
  ReadHeader();
}

bool Reader::Fail(const char* error) {
  error_ = error;
  return false;
}

void Reader::ReadHeader() {
  std::uint64_t version = 0;
  std::uint64_t threads = 0;
  std::uint64_t blocks = 0;
  std::uint64_t events = 0;
  if (!ReadVarint(version)) return;
  if (version != kVersion) {
    Fail("of a version that this program does not know");
    return;
  }
  if (!ReadBelow(kMaxThreads + 1, threads)) return;
  if (!ReadBelow(UINT32_MAX, blocks)) return;
  // An event takes two bytes, so a reader's tables are in proportion to the
  // file.
  if (!ReadBelow(rest_.size() / 2 + 1, events)) return;
  if (blocks > kMaxBlocksPerEvent * events) {
    Fail("it has more blocks than events for them");
    return;
  }
  header_ = {.threads = static_cast<std::uint32_t>(threads),
             .blocks = static_cast<std::uint32_t>(blocks),
             .events = events};
}

bool Reader::ReadVarint(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    if (rest_.empty()) return Fail("it ends in the middle of an event");
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return Fail("it has a number that is too long");
}

bool Reader::ReadBelow(std::uint64_t bound, std::uint64_t& value) {
  if (!ReadVarint(value)) return false;
  return value < bound || Fail("it has a number that is out of bounds");
}

bool Reader::Next(Event& event) {
  if (error_ != nullptr) return false;
  if (events_read_ == header_.events) {
    return rest_.empty() ? false : Fail("bytes follow its last event");
  }
  ++events_read_;
  return ReadEvent(event);
}

bool Reader::ReadEvent(Event& event) {
  if (rest_.empty()) return Fail("it has fewer events than its header says");
  const std::uint8_t first = rest_.front();
  rest_ = rest_.subspan(1);
  const std::uint8_t op = first & kOpMask;
  if (op > static_cast<std::uint8_t>(Op::kFree) ||
      (first & ~(kOpMask | kThreadFollows)) != 0) {
    return Fail("it has an operation that does not exist");
  }
  event = {.op = static_cast<Op>(op)};
  std::uint64_t value = thread_;
  if ((first & kThreadFollows) != 0 && !ReadVarint(value)) return false;
  if (value >= header_.threads) return Fail("it has a thread out of bounds");
  thread_ = event.thread = static_cast<std::uint32_t>(value);

  if (!ReadBelow(header_.blocks, value)) return false;
  event.block = static_cast<std::uint32_t>(value);
  if (event.op != Op::kFree && !ReadBelow(kMaxSize + 1, event.size)) {
    return false;
  }
  if (event.op == Op::kAllocateAligned) {
    if (!ReadBelow(kMaxAlignmentLog2 + 1, value)) return false;
    event.alignment_log2 = static_cast<std::uint8_t>(value);
  }
  return true;
}

void Writer::Add(const Event& event) {
  std::uint8_t first = static_cast<std::uint8_t>(event.op);
  if (event.thread != thread_) first |= kThreadFollows;
  body_.push_back(static_cast<char>(first));
  if (event.thread != thread_) AppendVarint(event.thread, body_);
  AppendVarint(event.block, body_);
  if (event.op != Op::kFree) AppendVarint(event.size, body_);
  if (event.op == Op::kAllocateAligned) {
    AppendVarint(event.alignment_log2, body_);
  }
  thread_ = event.thread;
  header_.threads = std::max(header_.threads, event.thread + 1);
  header_.blocks = std::max(header_.blocks, event.block + 1);
  ++header_.events;
}

std::string Writer::Finish() const {
  std::string checksummed;
  AppendVarint(kVersion, checksummed);
  AppendVarint(header_.threads, checksummed);
  AppendVarint(header_.blocks, checksummed);
  AppendVarint(header_.events, checksummed);
  checksummed += body_;
  std::string file(kMagic);
  AppendLittleEndian(Checksum(AsBytes(checksummed)), file);
  return file + checksummed;
}

}  // namespace hakmem::traces
