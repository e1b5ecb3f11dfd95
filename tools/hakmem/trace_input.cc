#include "tools/hakmem/trace_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "tools/hakmem/input_file.h"

namespace hakmem::tools {

TraceInput::TraceInput(const std::string& path) {
  if (path != "-" && Map(path)) return;
  InputFile file(path);
  status_ = file.ReadAll([this](std::string_view bytes) { read_ += bytes; });
}

TraceInput::~TraceInput() {
  if (mapping_ != nullptr) {
    ::munmap(const_cast<std::uint8_t*>(mapping_), mapped_bytes_);
  }
}

std::span<const std::uint8_t> TraceInput::bytes() const {
  if (mapping_ != nullptr) return {mapping_, mapped_bytes_};
  return {reinterpret_cast<const std::uint8_t*>(read_.data()), read_.size()};
}

bool TraceInput::Map(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const absl::Cleanup close = [fd] { ::close(fd); };
  struct stat facts;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return false;
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return false;
  mapping_ = static_cast<const std::uint8_t*>(bytes);
  mapped_bytes_ = size;
  return true;
}

}  // namespace hakmem::tools
