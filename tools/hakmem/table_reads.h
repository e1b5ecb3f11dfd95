// Reads words of a process's tables at the addresses that its tables name.
#ifndef HAKMEM_TOOLS_HAKMEM_TABLE_READS_H_
#define HAKMEM_TOOLS_HAKMEM_TABLE_READS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

inline std::uint64_t AddressOf(const void* there) {
  return reinterpret_cast<std::uint64_t>(there);
}

// Reads one after the other, until one fails.
class TableReads {
 public:
  explicit TableReads(const ProcessImage& image) : image_(image) {}

  template <typename T>
  TableReads& At(std::uint64_t address, T& value) {
    if (status_.ok()) status_ = image_.Read(address, &value, sizeof(value));
    return *this;
  }
  template <typename T>
  TableReads& At(const void* there, T& value) {
    return At(AddressOf(there), value);
  }
  const absl::Status& status() const { return status_; }

 private:
  const ProcessImage& image_;
  absl::Status status_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TABLE_READS_H_
