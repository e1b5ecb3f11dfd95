// Any bytes as a call trace: read as far as they go, and shown in each form.
//
// An even first byte: the rest is the file. An odd one: the rest is blocks,
// each a type, a length and as many bytes, which get the header and checksum
// that let the reader into them.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "allocator/base/check.h"
#include "tools/hakmem/trace_analysis.h"
#include "tools/hakmem/trace_blocks.h"
#include "tools/hakmem/trace_events.h"
#include "tools/hakmem/trace_replay.h"
#include "tools/hakmem/trace_report.h"

namespace hakmem::tools {
namespace {

void AppendWord(std::uint32_t word, std::string& out) {
  for (unsigned i = 0; i < 4; ++i) {
    out.push_back(static_cast<char>(word >> (8 * i)));
  }
}

std::string Blocks(std::string_view bytes) {
  std::string file;
  while (bytes.size() >= 2) {
    const std::size_t length = std::min<std::size_t>(
        static_cast<unsigned char>(bytes[1]), bytes.size() - 2);
    const std::string_view payload = bytes.substr(2, length);
    std::string header = "HAKT";
    header.push_back(bytes[0]);
    header.append(3, '\0');
    AppendWord(static_cast<std::uint32_t>(length), header);
    const std::string covered = header + std::string(payload);
    AppendWord(static_cast<std::uint32_t>(
                   crc32(0, reinterpret_cast<const Bytef*>(covered.data()),
                         static_cast<uInt>(covered.size()))),
               header);
    file += header;
    file += payload;
    bytes.remove_prefix(2 + length);
  }
  return file;
}

void Read(const std::string& file) {
  absl::StatusOr<TraceBlocks> blocks = ReadTraceBlocks(
      {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  if (!blocks.ok()) {
    HAK_CHECK(!blocks.status().message().empty());
    return;
  }
  HAK_CHECK_LE(blocks->damage.bytes(), file.size());
  TraceStacks stacks;
  TraceAnalysis analysis(blocks->facts());
  TraceReplay replay(blocks->facts());
  ReadTraceEvents(*blocks, stacks, [&](const CallEvent& event) {
    analysis.Add(event);
    replay.Add(event);
  });
  // Each byte is counted at most once, as what the file lacks or as events.
  HAK_CHECK_LE(blocks->damage.bytes(), file.size());
  HAK_CHECK_EQ(blocks->damage.bytes() == 0, blocks->damage.places() == 0);
  HAK_CHECK_EQ(analysis.total().allocations,
               analysis.total().live_blocks + analysis.total().freed);
  const std::string path = "trace";
  const TraceSymbols symbols(*blocks,
                             {.program = "none", .symbols_folder = ""});
  const TraceReport report = {.path = path,
                              .blocks = *blocks,
                              .stacks = stacks,
                              .analysis = analysis,
                              .symbols = symbols};
  HAK_CHECK(!TraceAsText(report, 3).empty());
  HAK_CHECK(!TraceAsJson(report).empty());
  HAK_CHECK(!TraceAsChromeJson(report).empty());
  HAK_CHECK(!TraceAsPprof(report).empty());
  HAK_CHECK(!replay.Finish().bytes.empty());
}

}  // namespace
}  // namespace hakmem::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1),
                               size - 1);
  hakmem::tools::Read(data[0] % 2 == 0 ? std::string(bytes)
                                       : hakmem::tools::Blocks(bytes));
  return 0;
}
