// A fuzzer's bytes as a list of records of equal length: the grammar of the
// allocator's fuzzers (docs/fuzzing.md).
//
// Owns: nothing but its place in the bytes. Called by: fuzz targets.
// Thread-safety: none.
//
//   input  = header, record…
//   header = 8 bytes: what holds for the whole run
//   record = op (1 byte), who (1), a (2), b (4); little-endian
//
// Bytes that do not make up a whole record are ignored; missing bytes of the
// header are 0. Because every record has the same length, inserting or dropping
// one leaves the others what they were, which is what records_mutator.cc does.
#ifndef HAKMEM_FUZZ_RECORDS_H_
#define HAKMEM_FUZZ_RECORDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/ace/ace.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/partitions.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

inline constexpr std::size_t kRecordBytes = 8;

struct Record {
  std::uint8_t op;
  std::uint8_t who;
  std::uint16_t a;
  std::uint32_t b;
};
static_assert(sizeof(Record) == kRecordBytes);

class Records {
 public:
  Records(const std::uint8_t* data, std::size_t size)
      : data_(data), size_(size) {
    std::memcpy(header_, data, std::min(size, kRecordBytes));
  }

  std::uint8_t header(std::size_t index) const { return header_[index]; }
  bool Next(Record& record) {
    if (size_ - std::min(at_, size_) < kRecordBytes) return false;
    std::memcpy(&record, data_ + at_, kRecordBytes);
    at_ += kRecordBytes;
    return true;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = kRecordBytes;
  std::uint8_t header_[kRecordBytes] = {};
};

// An allocation token for each number: the few that a program may be compiled
// to have, and hashes, half of which stand for types with pointers.
inline std::uint64_t TokenOf(unsigned number) {
  const std::uint64_t eighth = number % 8;
  return number / 8 % 2 == 0 ? eighth : eighth << 61 | kMostPartitions;
}

// A family of functions for each number, malloc's most often.
inline BlockKind KindOf(unsigned number) {
  return number % 8 > 4 ? BlockKind::kMalloc
                        : static_cast<BlockKind>(number % 8);
}

// A size for each number: small ones often, each route and its borders, and
// now and then more than anything can hold.
inline std::size_t SizeOf(std::uint32_t number) {
  const std::size_t rest = number >> 4;
  // -1, 0 or 1.
  const std::size_t off = rest / 1024 % 3 - 1;
  switch (number & 15) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return rest % 1100;
    case 5:
    case 6:
    case 7:
      return rest % (kMaxPoolBytes + 1);
    case 8:
    case 9:
      return ClassBytes(static_cast<SizeClass>(rest % kClassCount)) + off;
    case 10:
      return kMaxPoolBytes + rest % kMiB;
    case 11:
      return (1 + rest % 40) * kUnitBytes + off;
    case 12:
      return (1 + rest % 2) * kSuperSlabBytes + off;
    case 13:
      return 4 * kMiB + rest % (2 * kMiB);
    case 14:
      return rest % 8 == 0 ? kMaxSpanBytes + 1 + rest % (8 * kMiB)
                           : kMaxTinyBytes + off;
    default:
      return rest % 8 == 0 ? ~std::size_t{0} - rest : rest % 64;
  }
}

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_RECORDS_H_
