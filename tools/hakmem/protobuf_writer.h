// Messages in protobuf's wire format, written field by field.
//
// Enough for a message type that never changes, and much smaller than
// protobuf's library with its compiler.
#ifndef HAKMEM_TOOLS_HAKMEM_PROTOBUF_WRITER_H_
#define HAKMEM_TOOLS_HAKMEM_PROTOBUF_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hakmem::tools {

class ProtobufWriter {
 public:
  // uint64, int64 (as two's complement), bool. Fields that are zero are left
  // out, as proto3 has it.
  void Number(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    Varint(std::uint64_t{field} << 3);
    Varint(value);
  }

  // string, bytes, a message; written even when empty, because a repeated
  // field's empty element counts.
  void Bytes(std::uint32_t field, std::string_view bytes) {
    Varint(std::uint64_t{field} << 3 | 2);
    Varint(bytes.size());
    bytes_ += bytes;
  }
  void Message(std::uint32_t field, const ProtobufWriter& message) {
    Bytes(field, message.bytes_);
  }

  // repeated uint64 or int64, packed.
  void Numbers(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    ProtobufWriter packed;
    for (const std::uint64_t value : values) packed.Varint(value);
    Bytes(field, packed.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROTOBUF_WRITER_H_
