// Numbers and texts out of bytes that may be damaged.
#ifndef HAKMEM_TOOLS_HAKMEM_TRACE_BYTES_H_
#define HAKMEM_TOOLS_HAKMEM_TRACE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "allocator/base/planted_defect.h"

namespace hakmem::tools {

// Reads from the front; after the first thing that is not there, ok() is false
// and everything reads as 0 or empty.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::span<const std::uint8_t> rest() const { return rest_; }

  std::uint8_t Byte() {
    if (rest_.empty()) return Fail();
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

  // Seven bits a byte, low bits first.
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = Byte();
      if (!ok_) return 0;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return Fail();
  }

  // A length and as many bytes.
  std::string Text() {
    const std::uint64_t length = Varint();
    if (length > rest_.size() + PlantedDefect(Defect::kTextOneByteLong)) {
      Fail();
    }
    if (!ok_) return {};
    const auto bytes = rest_.first(static_cast<std::size_t>(length));
    rest_ = rest_.subspan(bytes.size());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A number of things that take at least a byte each.
  std::size_t Count() {
    const std::uint64_t count = Varint();
    if (count > rest_.size()) return Fail();
    return static_cast<std::size_t>(count);
  }

 private:
  std::uint8_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::span<const std::uint8_t> rest_;
  bool ok_ = true;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TRACE_BYTES_H_
