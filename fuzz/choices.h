// A fuzzer's bytes as choices.
//
// Owns: nothing but its place in the bytes. Called by: fuzz targets.
// Thread-safety: none.
#ifndef HAKMEM_FUZZ_CHOICES_H_
#define HAKMEM_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

class ByteChoices {
 public:
  ByteChoices(const std::uint8_t* data, std::size_t size)
      : data_(data), size_(size) {}

  // A number below `limit`, from as few bytes as can tell it; 0 when there are
  // none left.
  std::size_t Below(std::size_t limit) {
    std::size_t number = 0;
    for (std::size_t most = limit - 1; most != 0; most >>= 8) {
      number = number << 8 | Byte();
    }
    return number % limit;
  }
  bool empty() const { return at_ == size_; }
  const std::uint8_t* rest() const { return data_ + at_; }
  std::size_t rest_size() const { return size_ - at_; }

 private:
  std::uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

// The same bytes for whoever takes its choices by value.
class SharedChoices {
 public:
  explicit SharedChoices(ByteChoices& choices) : choices_(&choices) {}
  std::size_t Below(std::size_t limit) { return choices_->Below(limit); }

 private:
  ByteChoices* choices_;
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_CHOICES_H_
