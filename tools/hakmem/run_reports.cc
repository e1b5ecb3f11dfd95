#include "tools/hakmem/run_reports.h"

#include <glob.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// "    #3 0x55d main+0x8b (/usr/bin/a+0x18b) (BuildId: c3ba)"
struct ReportFrame {
  std::string_view path;
  std::string_view build_id;
  std::uint64_t offset = 0;
};

std::optional<ReportFrame> FrameIn(std::string_view line) {
  ReportFrame frame;
  if (!absl::ConsumePrefix(&line, "    #")) return std::nullopt;
  constexpr std::string_view kBuildId = " (BuildId: ";
  if (const std::size_t at = line.rfind(kBuildId); at != line.npos) {
    frame.build_id = absl::StripSuffix(line.substr(at + kBuildId.size()), ")");
    line = line.substr(0, at);
  }
  // A linker's name has no spaces; a path may have all.
  const std::size_t path = line.find(" (");
  const std::size_t offset = line.rfind("+0x");
  if (path == line.npos || offset == line.npos || offset < path ||
      !absl::ConsumeSuffix(&line, ")") ||
      !absl::SimpleHexAtoi(line.substr(offset + 1), &frame.offset)) {
    return std::nullopt;
  }
  frame.path = line.substr(path + 2, offset - path - 2);
  return frame;
}

// The library writes '?' for what is no plain ASCII (base/raw_print.h).
std::string PathOf(const ReportFrame& frame) {
  std::string path(frame.path);
  const std::string pattern =
      absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"*", "\\*"}, {"[", "\\["}});
  glob_t files = {};
  if (absl::StrContains(path, '?') && !frame.build_id.empty() &&
      ::glob(pattern.c_str(), 0, nullptr, &files) == 0) {
    for (std::size_t i = 0; i < files.gl_pathc; ++i) {
      const char* const file = files.gl_pathv[i];
      if (BuildIdOfFile(file) == frame.build_id) path = file;
    }
  }
  ::globfree(&files);
  return path;
}

// Adds to `text` the functions of a frame, with numbers from `number` on.
void AddCalls(const ReportFrame& frame, const std::vector<SourceLine>& lines,
              unsigned& number, std::string& text) {
  std::vector<NamedCall> calls;
  AddNamedCalls(lines, frame.path, frame.offset, calls);
  for (const NamedCall& call : calls) {
    const bool inlined = &call != &calls.back();
    absl::StrAppend(&text, "    #", number++, " ", ForTerminal(call.text),
                    inlined ? " (inlined)\n" : "\n");
  }
}

}  // namespace

std::string CompletedReports(std::string_view text, SymbolizerOptions options) {
  const std::vector<std::string_view> lines =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  std::vector<Module> modules;
  std::map<std::string, std::size_t, std::less<>> indexes;
  std::map<std::size_t, Frame> frames;  // by line
  std::vector<Frame> wanted;
  bool crashed = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("hakmem: ")) {
      crashed = lines[i].starts_with("hakmem: crash");
    }
    const std::optional<ReportFrame> frame = FrameIn(lines[i]);
    if (!frame) continue;
    const auto [index, is_new] =
        indexes.try_emplace(std::string(frame->path), modules.size());
    if (is_new) {
      modules.push_back(
          {.path = PathOf(*frame), .build_id = std::string(frame->build_id)});
    }
    // Where a crash was, no call returns to.
    const bool is_call = !crashed || !lines[i].starts_with("    #0 ");
    frames[i] = {.module = index->second,
                 .offset = frame->offset + (is_call ? 0 : 1)};
    wanted.push_back(frames[i]);
  }
  Symbolizer symbolizer(std::move(options));
  symbolizer.Resolve(modules, wanted);
  std::string completed;
  unsigned number = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto frame = frames.find(i);
    if (frame == frames.end()) {
      number = 0;
      absl::StrAppend(&completed, lines[i], "\n");
    } else {
      AddCalls(*FrameIn(lines[i]), symbolizer.Lines(frame->second), number,
               completed);
    }
  }
  return completed;
}

}  // namespace hakmem::tools
