#include "tools/hakmem/symbolizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/debug_files.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/function_lines.h"
#include "tools/hakmem/perf_map.h"
#include "tools/hakmem/subprocess.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// Of so many files a reader is told what brings their lines.
constexpr std::size_t kMostRemedies = 3;
constexpr std::string_view kNoNames = "none";

// Texts, each with its zero.
void Write(std::string_view text, std::FILE* file) {
  std::fwrite(
      text.data(), 1,
      text.find('\0') == std::string_view::npos ? text.size() : text.find('\0'),
      file);
  std::fputc('\0', file);
}

// False: there is no more.
bool Take(std::string_view& texts, std::string& text) {
  const std::size_t end = texts.find('\0');
  if (end == std::string_view::npos) return false;
  text = texts.substr(0, end);
  texts.remove_prefix(end + 1);
  return true;
}

}  // namespace

Symbolizer::Symbolizer(SymbolizerOptions options)
    : options_(std::move(options)) {
  if (options_.program.empty() || options_.program == kNoNames) return;
  notes_.insert(absl::StrCat(
      "--symbolizer=", ForTerminal(options_.program),
      " has no effect: names and lines are found without another program"));
}

NamedFile Symbolizer::FileOf(const Module& module) {
  const std::string_view root = RootOf(module.source);
  std::vector<std::string> candidates;
  if (!options_.symbols_folder.empty()) {
    candidates = {
        DebugFile(options_.symbols_folder, module.build_id),
        absl::StrCat(options_.symbols_folder, "/", module.path),
        absl::StrCat(options_.symbols_folder, "/", FileName(module.path))};
  }
  // A container has its own packages.
  candidates.push_back(SystemDebugFile(root, module.build_id));
  candidates.push_back(SystemDebugFile("", module.build_id));
  // A running process's path may have another file by now, or here.
  const std::string& file = module.source.empty() ? module.path : module.source;
  // Not what a trace calls by a relative name, like "[vdso]".
  if (absl::StartsWith(file, "/")) candidates.push_back(file);
  bool other_build = false;
  for (std::string& candidate : candidates) {
    NamedFile found = NamedFile::Open(std::move(candidate));
    if (found.descriptor() < 0) continue;
    if (module.build_id.empty() ||
        BuildIdOfFile(found.path()) == module.build_id) {
      return found;
    }
    other_build = true;
  }
  const std::string name = ForTerminal(module.path);
  notes_.insert(
      other_build
          ? absl::StrCat(name,
                         " is another build here than the one that "
                         "ran (build id ",
                         ForTerminal(module.build_id),
                         "); --symbols=FOLDER names a folder with that one")
          : absl::StrCat(name,
                         " is not on this machine; --symbols=FOLDER "
                         "names a folder with a copy of it"));
  return {};
}

void Symbolizer::Resolve(const std::vector<Module>& modules,
                         const std::vector<Frame>& frames) {
  if (options_.program == kNoNames) return;
  Offsets wanted;
  for (const Frame& frame : frames) {
    if (frame.module >= modules.size()) continue;
    // Whatever comes, nobody asks twice.
    if (lines_.try_emplace(Key(frame.module, frame.offset)).second) {
      wanted[frame.module].insert(frame.offset);
    }
  }
  std::vector<Query> queries;
  NoteMissingNames(modules, wanted);
  for (const auto& [index, offsets] : wanted) {
    const Module& module = modules[index];
    if (PerfMap::IsItsName(module.path)) {
      ReadPerfMap(module, index, offsets);
      continue;
    }
    NamedFile file = FileOf(module);
    if (file.descriptor() < 0) continue;
    queries.push_back({index, &module, std::move(file), &offsets});
  }
  // Where most lines would be missing, a reader is told first.
  std::ranges::sort(queries, std::ranges::greater(), [](const Query& query) {
    return std::pair(query.offsets->size(), ~query.index);
  });
  for (std::size_t done = 0; done < queries.size();) done = Ask(queries, done);
}

void Symbolizer::NoteMissingNames(const std::vector<Module>& modules,
                                  const Offsets& wanted) {
  if (std::ranges::any_of(modules, PerfMap::IsItsName, &Module::path)) return;
  for (const auto& [index, offsets] : wanted) {
    const std::string& path = modules[index].path;
    const Runtime* const runtime = RuntimeOf(path);
    if (runtime == nullptr || runtime->names.empty()) continue;
    notes_.insert(absl::StrCat(
        ForTerminal(path),
        " runs functions whose names are not known: ", runtime->names));
  }
}

void Symbolizer::ReadPerfMap(const Module& module, std::size_t index,
                             const std::set<std::uint64_t>& offsets) {
  const PerfMap map =
      PerfMap::OfFile(module.source.empty() ? module.path : module.source);
  for (const std::uint64_t offset : offsets) {
    std::vector<SourceLine>& lines = lines_[Key(index, offset)];
    // A return address is behind its call, and may be the next line's.
    const PerfMap::Function* const function =
        map.At(offset == 0 ? 0 : offset - 1);
    if (function != nullptr) lines.push_back(function->line);
  }
}

std::size_t Symbolizer::Ask(const std::vector<Query>& queries,
                            std::size_t begin) {
  std::string output;
  const absl::Status status = RunApart(
      [&](std::FILE* file) {
        for (std::size_t i = begin; i < queries.size(); ++i) {
          const FunctionLines found = FunctionLinesOf(
              queries[i].file, options_.symbols_folder, *queries[i].offsets);
          Write(found.has_lines ? "lines" : "", file);
          for (const std::vector<SourceLine>& lines : found.calls) {
            for (const SourceLine& line : lines) {
              Write(line.function, file);
              Write(line.place, file);
            }
            Write("", file);
            Write("", file);
          }
          std::fflush(file);
        }
      },
      output);
  std::string_view answers = output;
  for (; begin < queries.size(); ++begin) {
    if (Read(queries[begin], answers)) continue;
    notes_.insert(absl::StrCat(ForTerminal(queries[begin].module->path),
                               " could not be read: ", status.message()));
    return begin + 1;
  }
  return begin;
}

bool Symbolizer::Read(const Query& query, std::string_view& answers) {
  std::string has_lines;
  if (!Take(answers, has_lines)) return false;
  if (has_lines.empty()) NoteMissingLines(*query.module);
  for (const std::uint64_t offset : *query.offsets) {
    std::vector<SourceLine>& lines = lines_[Key(query.index, offset)];
    for (SourceLine line;;) {
      if (!Take(answers, line.function) || !Take(answers, line.place)) {
        return false;
      }
      if (line.function.empty() && line.place.empty()) break;
      lines.push_back(line);
    }
  }
  return true;
}

void Symbolizer::NoteMissingLines(const Module& module) {
  // Nobody looks for the allocator's own.
  if (absl::StartsWith(FileName(module.path), "libhakmem") ||
      without_lines_.size() >= kMostRemedies ||
      !without_lines_.insert(module.path).second) {
    return;
  }
  notes_.insert(
      absl::StrCat(ForTerminal(module.path), " has no lines: ",
                   ForTerminal(RemedyForLines(RootOf(module.source),
                                              module.path, module.build_id))));
}

const std::vector<SourceLine>& Symbolizer::Lines(const Frame& frame) const {
  static const auto* const kNothing = new std::vector<SourceLine>();
  const auto found = lines_.find(Key(frame.module, frame.offset));
  return found == lines_.end() ? *kNothing : found->second;
}

}  // namespace hakmem::tools
