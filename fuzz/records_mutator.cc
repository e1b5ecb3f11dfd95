// How libFuzzer changes an input of records: half of the time whole records
// (drop, repeat, swap, splice in, take a new one), else bytes as ever, so that
// numbers found in comparisons still get in. Of two inputs, records of the one
// go on after some of the other, so that both stay what they are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "fuzz/records.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                        std::size_t max_size);

namespace hakmem {
namespace {

using Random = std::minstd_rand;

Record NewRecord(Random& random) {
  return {static_cast<std::uint8_t>(random() >> 8),
          static_cast<std::uint8_t>(random() >> 8),
          static_cast<std::uint16_t>(random() >> 8),
          static_cast<std::uint32_t>(random() << 16 ^ random())};
}

void ChangeRecords(std::vector<Record>& records, std::size_t most,
                   Random& random) {
  const std::size_t count = records.size();
  const auto any = [&](std::size_t limit) { return random() % limit; };
  const auto at = [&](std::size_t index) {
    return records.begin() + static_cast<std::ptrdiff_t>(index);
  };
  if (count == 0 || (any(3) == 0 && count < most)) {
    records.insert(at(any(count + 1)), NewRecord(random));
    return;
  }
  const std::size_t first = any(count);
  const std::size_t length = 1 + any(std::min<std::size_t>(count - first, 8));
  const std::vector<Record> run(at(first), at(first + length));
  switch (any(4)) {
    case 0:
      records.erase(at(first), at(first + length));
      break;
    case 1:
      records.insert(at(any(count + 1)), run.begin(), run.end());
      break;
    case 2:
      std::swap(records[first], records[any(count)]);
      break;
    default:
      records[first].op = static_cast<std::uint8_t>(random() >> 8);
      break;
  }
  if (records.size() > most) records.resize(most);
}

// As many bytes as make up whole records, the header left out.
std::size_t RecordBytes(std::size_t size) {
  return size < kRecordBytes ? 0 : (size / kRecordBytes - 1) * kRecordBytes;
}

}  // namespace
}  // namespace hakmem

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                               std::size_t size,
                                               std::size_t max_size,
                                               unsigned seed) {
  using hakmem::kRecordBytes;
  hakmem::Random random(seed + 1);
  if (random() % 2 == 0 || max_size < 2 * kRecordBytes) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  std::uint8_t header[kRecordBytes] = {};
  std::memcpy(header, data, std::min(size, kRecordBytes));
  std::vector<hakmem::Record> records(
      size < kRecordBytes ? 0 : size / kRecordBytes - 1);
  if (!records.empty()) {
    std::memcpy(records.data(), data + kRecordBytes,
                records.size() * kRecordBytes);
  }
  hakmem::ChangeRecords(records, max_size / kRecordBytes - 1, random);
  std::memcpy(data, header, kRecordBytes);
  if (!records.empty()) {
    std::memcpy(data + kRecordBytes, records.data(),
                records.size() * kRecordBytes);
  }
  return (records.size() + 1) * kRecordBytes;
}

// The header and first records of one input, then the last records of another.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(
    const std::uint8_t* data1, std::size_t size1, const std::uint8_t* data2,
    std::size_t size2, std::uint8_t* out, std::size_t max_out_size,
    unsigned seed) {
  using hakmem::kRecordBytes;
  if (size1 < kRecordBytes || max_out_size < kRecordBytes) return 0;
  hakmem::Random random(seed + 1);
  // Else every second mutation would be one of these.
  if (random() % 4 != 0) return 0;
  const auto records_of = [&](std::size_t size) {
    const std::size_t most = hakmem::RecordBytes(size) / kRecordBytes;
    return random() % (most + 1) * kRecordBytes;
  };
  const std::size_t first =
      std::min(kRecordBytes + records_of(size1), max_out_size);
  const std::size_t last = std::min(records_of(size2), max_out_size - first);
  std::memcpy(out, data1, first);
  if (last != 0) {
    const std::size_t end2 = kRecordBytes + hakmem::RecordBytes(size2);
    std::memcpy(out + first, data2 + end2 - last, last);
  }
  return first + last;
}
