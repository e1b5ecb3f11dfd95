#include "allocator/diag/call_trace_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "allocator/diag/failure_event.h"

namespace hakmem {
namespace {

using call_trace::BlockType;
using call_trace::kBlockHeaderBytes;
using call_trace::kChecksumOffset;

constexpr unsigned kFailureReasonCount =
    static_cast<unsigned>(FailureReason::kMapFail) + 1;

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
    }
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrcTable = MakeCrcTable();

std::uint32_t UpdateCrc(std::uint32_t crc,
                        std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ byte) & 0xff];
  }
  return crc;
}

void PutLittleEndian(std::uint32_t value, std::uint8_t* out) {
  for (unsigned byte = 0; byte < 4; ++byte) {
    out[byte] = static_cast<std::uint8_t>(value >> (8 * byte));
  }
}

}  // namespace

int CallTraceWriter::Open(const char* path, std::uint8_t* buffer) {
  buffer_ = buffer;
  error_ = 0;
  modules_checksum_ = 0;
  return file_.Open(path);
}

void CallTraceWriter::Begin(BlockType type) {
  std::memset(buffer_, 0, kBlockHeaderBytes);
  std::memcpy(buffer_, call_trace::kBlockMagic,
              sizeof(call_trace::kBlockMagic));
  buffer_[sizeof(call_trace::kBlockMagic)] = static_cast<std::uint8_t>(type);
  at_ = buffer_ + kBlockHeaderBytes;
}

void CallTraceWriter::Number(std::uint64_t value) {
  at_ = call_trace::PutVarint(value, at_);
}

void CallTraceWriter::Bytes(std::span<const std::uint8_t> bytes) {
  std::memcpy(at_, bytes.data(), bytes.size());
  at_ += bytes.size();
}

void CallTraceWriter::Text(std::string_view text) {
  Number(text.size());
  Bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void CallTraceWriter::End() {
  const auto payload_bytes =
      static_cast<std::size_t>(at_ - buffer_) - kBlockHeaderBytes;
  PutLittleEndian(static_cast<std::uint32_t>(payload_bytes), buffer_ + 8);
  std::uint32_t crc = UpdateCrc(~std::uint32_t{0}, {buffer_, kChecksumOffset});
  crc = ~UpdateCrc(crc, {buffer_ + kBlockHeaderBytes, payload_bytes});
  PutLittleEndian(crc, buffer_ + kChecksumOffset);
  if (error_ == 0) {
    error_ = file_.Append({buffer_, kBlockHeaderBytes + payload_bytes});
  }
}

void CallTraceWriter::WriteStart(const CallTraceStart& start,
                                 const CallTraceFacts& facts) {
  Begin(BlockType::kStart);
  Number(call_trace::kFormatVersion);
  Number(static_cast<std::uint64_t>(start.process_id));
  Number(start.monotonic_ns);
  Number(start.wall_clock_ns);
  Number(start.sample);
  Number(start.stacks ? call_trace::kStartHasStacks : 0);
  Text(facts.program);
  Text(facts.version);
  Text(facts.variant);
  Number(facts.max_tiny_bytes);
  Number(facts.max_pool_bytes);
  Number(facts.max_span_bytes);
  Number(facts.unit_bytes);
  Number(facts.page_bytes);
  Number(facts.class_count);
  for (unsigned i = 0; i < facts.class_count; ++i) Number(facts.class_bytes(i));
  const auto names = [&](unsigned count, auto name) {
    Number(count);
    for (unsigned i = 0; i < count; ++i) Text(name(i));
  };
  names(kCallCount, [](unsigned i) { return CallName(static_cast<Call>(i)); });
  names(kFailureReasonCount, [](unsigned i) {
    return FailureReasonName(static_cast<FailureReason>(i));
  });
  names(kFailureDetailCount, [](unsigned i) {
    return FailureDetailName(static_cast<FailureDetail>(i));
  });
  names(kDispositionCount, [](unsigned i) {
    return DispositionName(static_cast<Disposition>(i));
  });
  End();
}

void CallTraceWriter::WriteThread(const TraceRing& ring,
                                  std::string_view name) {
  Begin(BlockType::kThread);
  Number(ring.thread_number);
  Number(static_cast<std::uint64_t>(ring.thread_id));
  Text(name);
  Number(ring.calls());
  Number(ring.recorded());
  Number(ring.dropped());
  End();
}

void CallTraceWriter::WriteEvents(const TraceRing& ring,
                                  const TraceRing::Piece& piece) {
  Begin(BlockType::kEvents);
  Number(ring.thread_number);
  Number(piece.chunk);
  Number(piece.offset);
  Number(ring.calls());
  Number(ring.dropped());
  Bytes({piece.bytes, piece.length});
  End();
}

void CallTraceWriter::ModuleLine(std::string_view line) {
  // "55d0a000-55d0b000 r-xp 00001000 fd:00 1234   /usr/bin/program"
  const std::size_t access = line.find(' ');
  const std::size_t path = line.find('/');
  if (access == std::string_view::npos || path == std::string_view::npos ||
      line.substr(access, 4).find('x') == std::string_view::npos) {
    return;
  }
  const auto used = static_cast<std::size_t>(at_ - buffer_);
  if (line.size() > kBufferBytes - used) return;
  Bytes({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
}

void CallTraceWriter::ModuleLines() {
  const SystemFile maps("/proc/self/maps");
  char text[2048];
  std::size_t length = 0;
  for (;;) {
    const std::size_t got = maps.Read(std::span(text).subspan(length));
    if (got == 0) return;
    length += got;
    std::size_t begin = 0;
    while (const void* newline =
               std::memchr(text + begin, '\n', length - begin)) {
      const auto end = static_cast<std::size_t>(
          static_cast<const char*>(newline) - text + 1);
      ModuleLine({text + begin, end - begin});
      begin = end;
    }
    // A line that is longer than the buffer is given up.
    if (begin == 0 && length == sizeof(text)) begin = length;
    length -= begin;
    std::memmove(text, text + begin, length);
  }
}

void CallTraceWriter::WriteModules() {
  Begin(BlockType::kModules);
  ModuleLines();
  const auto payload = std::span(buffer_ + kBlockHeaderBytes, at_);
  const std::uint32_t checksum = UpdateCrc(0, payload);
  if (checksum == modules_checksum_) return;
  modules_checksum_ = checksum;
  End();
}

void CallTraceWriter::WriteEnd(const CallTraceTotals& totals,
                               std::uint64_t time_ns, int signal) {
  Begin(BlockType::kEnd);
  Number(time_ns);
  Number(totals.calls);
  Number(totals.recorded);
  Number(totals.dropped);
  Number(static_cast<std::uint64_t>(signal));
  End();
}

}  // namespace hakmem
