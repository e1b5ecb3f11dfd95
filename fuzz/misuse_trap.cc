#include "fuzz/misuse_trap.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "allocator/process/process.h"
#include "allocator/reports/misuse_policy.h"

namespace hakmem {

bool MisuseTrap::Note(std::string_view text) {
  if (active_ == nullptr) return false;
  MisuseTrap& trap = *active_;
  const std::size_t bytes =
      std::min(text.size(), sizeof(trap.text_) - trap.length_);
  std::memcpy(trap.text_ + trap.length_, text.data(), bytes);
  trap.length_ += bytes;
  return true;
}

void MisuseTrap::Return() {
  if (active_ == nullptr) return;
  // The report ends here; the next one is not in the middle of it.
  EndReport();
  std::longjmp(active_->back_, 1);
}

}  // namespace hakmem

// The linker makes every call of hakmem::AbortProcess and hakmem::WriteFd one
// of these (--wrap); __real_ is what it was.
extern "C" {

// The fuzzer's handler of SIGABRT writes the input down; the real one goes past
// handlers.
[[noreturn]] void __wrap__ZN6hakmem12AbortProcessEv() {
  hakmem::MisuseTrap::Return();
  std::abort();
}

void __real__ZN6hakmem7WriteFdEiSt17basic_string_viewIcSt11char_traitsIcEE(
    int fd, std::string_view text);
void __wrap__ZN6hakmem7WriteFdEiSt17basic_string_viewIcSt11char_traitsIcEE(
    int fd, std::string_view text) {
  if (!hakmem::MisuseTrap::Note(text)) {
    __real__ZN6hakmem7WriteFdEiSt17basic_string_viewIcSt11char_traitsIcEE(fd,
                                                                          text);
  }
}

}  // extern "C"
