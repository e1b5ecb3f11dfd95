// Call traces made by hand, for tests.
#ifndef HAKMEM_TOOLS_HAKMEM_TEST_TRACE_H_
#define HAKMEM_TOOLS_HAKMEM_TEST_TRACE_H_

#include <zlib.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/call_trace/call_trace_encoder.h"
#include "allocator/call_trace/call_trace_format.h"

namespace hakmem::tools {

class TestTrace {
 public:
  // What the block says, as numbers and texts.
  class Payload {
   public:
    Payload& Number(std::uint64_t value) {
      std::uint8_t bytes[call_trace::kMaxVarintBytes];
      const auto* const end = call_trace::PutVarint(value, bytes);
      bytes_.append(reinterpret_cast<const char*>(bytes),
                    static_cast<std::size_t>(end - bytes));
      return *this;
    }
    Payload& Text(std::string_view text) {
      Number(text.size());
      bytes_ += text;
      return *this;
    }
    Payload& Bytes(std::string_view bytes) {
      bytes_ += bytes;
      return *this;
    }
    const std::string& bytes() const { return bytes_; }

   private:
    std::string bytes_;
  };

  TestTrace& Block(call_trace::BlockType type, const Payload& payload) {
    std::string block = "HAKT";
    block.push_back(static_cast<char>(type));
    block.append(3, '\0');
    AppendWord(static_cast<std::uint32_t>(payload.bytes().size()), block);
    const std::string covered = block + payload.bytes();
    AppendWord(static_cast<std::uint32_t>(
                   crc32(0, reinterpret_cast<const Bytef*>(covered.data()),
                         static_cast<uInt>(covered.size()))),
               block);
    bytes_ += block + payload.bytes();
    return *this;
  }

  // Classes of 16, 32 and 64 bytes; Tiny up to 32, spans up to 1 MiB.
  TestTrace& Start(std::uint64_t sample = 1, bool stacks = false) {
    Payload start;
    start.Number(call_trace::kFormatVersion).Number(42).Number(1000);
    start.Number(1'700'000'000'000'000'000).Number(sample);
    start.Number(stacks ? call_trace::kStartHasStacks : 0);
    start.Text("program").Text("1.2.3").Text("tracing");
    start.Number(32).Number(64).Number(1 << 20).Number(4096).Number(4096);
    start.Number(3).Number(16).Number(32).Number(64);
    const auto names = [&](unsigned count, auto name) {
      start.Number(count);
      for (unsigned i = 0; i < count; ++i) start.Text(name(i));
    };
    names(kCallCount,
          [](unsigned i) { return CallName(static_cast<Call>(i)); });
    names(4, [](unsigned i) {
      return FailureReasonName(static_cast<FailureReason>(i));
    });
    names(kFailureDetailCount, [](unsigned i) {
      return FailureDetailName(static_cast<FailureDetail>(i));
    });
    names(kDispositionCount, [](unsigned i) {
      return DispositionName(static_cast<Disposition>(i));
    });
    return Block(call_trace::BlockType::kStart, start);
  }

  // The next events of a thread, in chunk `chunk`.
  TestTrace& Events(std::uint64_t thread, std::uint64_t chunk,
                    const std::vector<TraceEvent>& events) {
    Stream& stream = streams_[thread];
    if (stream.encoder == nullptr) {
      stream.encoder = std::make_unique<TraceEncoder>();
    }
    if (stream.chunk != chunk + 1) {
      stream.chunk = chunk + 1;
      stream.offset = 0;
      stream.encoder->StartChunk();
    }
    std::string bytes;
    for (const TraceEvent& event : events) {
      std::uint8_t encoded[call_trace::kMaxEventBytes];
      const auto* const end = stream.encoder->Encode(event, encoded);
      bytes.append(reinterpret_cast<const char*>(encoded),
                   static_cast<std::size_t>(end - encoded));
    }
    stream.events += events.size();
    Payload payload;
    payload.Number(thread).Number(chunk).Number(stream.offset);
    payload.Number(stream.events).Number(0).Bytes(bytes);
    stream.offset += bytes.size();
    return Block(call_trace::BlockType::kEvents, payload);
  }

  TestTrace& Thread(std::uint64_t number, std::uint64_t id,
                    std::string_view name, std::uint64_t dropped = 0) {
    Payload payload;
    payload.Number(number).Number(id).Text(name);
    payload.Number(streams_[number].events).Number(streams_[number].events);
    payload.Number(dropped);
    return Block(call_trace::BlockType::kThread, payload);
  }

  TestTrace& Module(std::uint64_t begin, std::uint64_t bytes,
                    std::string_view path) {
    Payload payload;
    payload.Number(begin).Number(bytes).Number(0x1000).Number(begin - 0x1000);
    payload.Text("0123456789abcdef").Text(path);
    return Block(call_trace::BlockType::kModules, payload);
  }

  TestTrace& End(std::uint64_t dropped = 0, std::uint64_t signal = 0) {
    Payload payload;
    payload.Number(1'000'000).Number(10).Number(10).Number(dropped);
    payload.Number(signal);
    return Block(call_trace::BlockType::kEnd, payload);
  }

  std::string& bytes() { return bytes_; }
  std::span<const std::uint8_t> span() const {
    return {reinterpret_cast<const std::uint8_t*>(bytes_.data()),
            bytes_.size()};
  }

 private:
  struct Stream {
    std::unique_ptr<TraceEncoder> encoder;
    std::uint64_t chunk = 0;  // plus one
    std::uint64_t offset = 0;
    std::uint64_t events = 0;
  };

  static void AppendWord(std::uint32_t word, std::string& out) {
    for (unsigned i = 0; i < 4; ++i) {
      out.push_back(static_cast<char>(word >> (8 * i)));
    }
  }

  std::string bytes_;
  std::map<std::uint64_t, Stream> streams_;
};

inline TraceEvent TestAllocation(std::uint64_t time_ns, std::uint64_t address,
                                 std::uint64_t size,
                                 Call call = Call::kMalloc) {
  return {.operation = static_cast<std::uint8_t>(
              call_trace::kAllocate + static_cast<std::uint8_t>(call)),
          .time_ns = time_ns,
          .address = address,
          .size_bytes = size};
}

inline TraceEvent TestFree(std::uint64_t time_ns, std::uint64_t address) {
  return {
      .operation = call_trace::kFree, .time_ns = time_ns, .address = address};
}

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TEST_TRACE_H_
