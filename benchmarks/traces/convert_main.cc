// convert RECORDING TRACE [MAX_EVENTS]: from what the recorder wrote to a
// compact trace. Says on standard output what is in it.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "benchmarks/traces/converter.h"
#include "benchmarks/traces/mapped_memory.h"
#include "benchmarks/traces/plan.h"
#include "benchmarks/traces/raw_record.h"

namespace hakmem::traces {
namespace {

constexpr int kBadInput = 2;

int Complain(const char* path, const char* error) {
  std::fprintf(stderr, "convert: %s: %s\n", path, error);
  return kBadInput;
}

bool ParseEvents(std::string_view text, std::uint64_t& events) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, events);
  return error == std::errc() && rest == end && events > 0;
}

int Main(const char* recording, const char* trace, std::uint64_t max_events) {
  MappedFile file;
  const char* error = file.Open(recording);
  if (error != nullptr) return Complain(recording, error);
  if (file.bytes().empty() || file.bytes().size() % sizeof(RawRecord) != 0) {
    return Complain(recording, "not a recording");
  }
  // A mapping begins at a page, so its records are aligned.
  const void* const begin = file.bytes().data();
  const Conversion done = Convert({static_cast<const RawRecord*>(begin),
                                   file.bytes().size() / sizeof(RawRecord)},
                                  max_events);
  if (done.events == 0) return Complain(recording, "no calls were recorded");
  Plan plan;
  error = plan.Load({reinterpret_cast<const std::uint8_t*>(done.trace.data()),
                     done.trace.size()});
  if (error != nullptr) return Complain(trace, error);
  std::ofstream out(trace, std::ios::binary);
  if (!out.write(done.trace.data(),
                 static_cast<std::streamsize>(done.trace.size())) ||
      !out.flush()) {
    return Complain(trace, "cannot be written");
  }
  std::printf(
      "%s: %llu events, %u threads, %u blocks, peak %llu bytes, "
      "%llu calls left out\n",
      trace, static_cast<unsigned long long>(done.events),
      plan.header().threads, plan.header().blocks,
      static_cast<unsigned long long>(plan.peak_bytes()),
      static_cast<unsigned long long>(done.left_out));
  return 0;
}

}  // namespace
}  // namespace hakmem::traces

int main(int argc, char** argv) {
  std::uint64_t max_events = UINT64_MAX;
  if (argc < 3 || argc > 4 ||
      (argc == 4 && !hakmem::traces::ParseEvents(argv[3], max_events))) {
    std::fputs("usage: convert RECORDING TRACE [MAX_EVENTS]\n", stderr);
    return hakmem::traces::kBadInput;
  }
  return hakmem::traces::Main(argv[1], argv[2], max_events);
}
