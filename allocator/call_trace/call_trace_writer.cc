#include "allocator/call_trace/call_trace_writer.h"

#include <array>
#include <cstring>

#include "allocator/failures/failure_event.h"
#include "allocator/platform/proc_reader.h"
#include "allocator/stacks/modules.h"

namespace hakmem {
namespace {

using call_trace::BlockType;
using call_trace::kBlockHeaderBytes;
using call_trace::kChecksumOffset;

constexpr std::uintptr_t kLastOfPage = 4095;

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
  return file_.Open(path, call_trace::kBlockMagic);
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
  std::string_view range = TakeWord(line);
  const std::string_view access = TakeWord(line);
  std::string_view offset = TakeWord(line);
  const std::size_t path = line.find('/');
  if (access.find('x') == std::string_view::npos ||
      path == std::string_view::npos) {
    return;
  }
  const std::uint64_t begin = TakeHex(range);
  ModuleOf module = {};
  // A segment need not begin where its first page does.
  const auto first = static_cast<std::uintptr_t>(begin);
  if (!FindModule(first, module)) FindModule(first + kLastOfPage, module);
  line.remove_prefix(path);
  const std::size_t used = static_cast<std::size_t>(at_ - buffer_);
  const std::size_t most =
      6 * call_trace::kMaxVarintBytes + line.size() + sizeof(module.build_id);
  if (most > kBufferBytes - used) return;
  Number(begin);
  Number(TakeHex(range) - begin);
  Number(TakeHex(offset));
  Number(module.base);
  Text(module.build_id);
  Text(line);
}

void CallTraceWriter::WriteModules() {
  Begin(BlockType::kModules);
  LineReader maps(ProcReader(), "/proc/self/maps");
  std::string_view line;
  while (maps.Next(line)) ModuleLine(line);
  const std::uint32_t checksum =
      UpdateCrc(0, std::span(buffer_ + kBlockHeaderBytes, at_));
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
