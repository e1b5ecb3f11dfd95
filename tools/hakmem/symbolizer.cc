#include "tools/hakmem/symbolizer.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/perf_map.h"
#include "tools/hakmem/rust_name.h"
#include "tools/hakmem/subprocess.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kSystemDebugFolder = "/usr/lib/debug";
constexpr int kNewestLlvm = 25;
constexpr int kOldestLlvm = 13;

std::string FindSymbolizer() {
  std::vector<std::string> names = {"llvm-symbolizer"};
  for (int version = kNewestLlvm; version >= kOldestLlvm; --version) {
    names.push_back(absl::StrCat("llvm-symbolizer-", version));
  }
  names.push_back("addr2line");
  for (const std::string& name : names) {
    const std::string path = FindProgram(name);
    if (!path.empty()) return path;
  }
  return "";
}

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsAddr2line(std::string_view program) {
  return absl::StrContains(FileName(program), "addr2line");
}

// addr2line has one file for all addresses.
std::vector<std::string> Command(const std::string& program,
                                 const std::string& file) {
  if (IsAddr2line(program)) {
    return {program, "-a", "-f", "-C", "-i", "-e", file};
  }
  return {program,       "--output-style=GNU", "--addresses",
          "--functions", "--demangle",         "--inlines"};
}

// As llvm-symbolizer reads it; it knows no escapes.
bool CanBeQuoted(const std::string& file) {
  return !absl::StrContains(file, '"') && !absl::StrContains(file, '\n');
}

// Where separate debug information lies in a folder, by build id.
std::string DebugFile(std::string_view folder, const std::string& build_id) {
  if (build_id.size() < 3) return "";
  return absl::StrCat(folder, "/.build-id/", build_id.substr(0, 2), "/",
                      build_id.substr(2), ".debug");
}

// A return address is behind its call, and may be the next line's.
std::uint64_t AskedFor(std::uint64_t offset) {
  return offset == 0 ? 0 : offset - 1;
}

bool IsWithin(const std::map<std::uint64_t, std::uint64_t>& ranges,
              std::uint64_t address) {
  const auto after = ranges.upper_bound(address);
  return after != ranges.begin() && address < std::prev(after)->second;
}

bool Exists(const std::string& path) {
  return !path.empty() && ::access(path.c_str(), R_OK) == 0;
}

}  // namespace

Symbolizer::Symbolizer(SymbolizerOptions options)
    : options_(std::move(options)) {
  if (options_.program == "none") return;
  program_ = options_.program.empty() ? FindSymbolizer()
                                      : FindProgram(options_.program);
  if (!program_.empty()) return;
  notes_.insert(
      options_.program.empty()
          ? "functions have no names here: neither llvm-symbolizer (Debian: "
            "apt install llvm) nor addr2line (apt install binutils) is "
            "installed"
          : absl::StrCat("functions have no names here: there is no program ",
                         ForTerminal(options_.program)));
}

std::string Symbolizer::FileOf(const Module& module) {
  std::vector<std::string> candidates;
  if (!options_.symbols_folder.empty()) {
    candidates = {
        DebugFile(options_.symbols_folder, module.build_id),
        absl::StrCat(options_.symbols_folder, "/", module.path),
        absl::StrCat(options_.symbols_folder, "/", FileName(module.path))};
  }
  candidates.push_back(DebugFile(kSystemDebugFolder, module.build_id));
  // A running process's path may have another file by now, or here.
  const std::string& file = module.source.empty() ? module.path : module.source;
  // Not what a trace calls by a relative name, like "[vdso]".
  if (absl::StartsWith(file, "/")) candidates.push_back(file);
  bool other_build = false;
  for (const std::string& candidate : candidates) {
    if (!Exists(candidate)) continue;
    if (module.build_id.empty() ||
        BuildIdOfFile(candidate) == module.build_id) {
      return candidate;
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
  return "";
}

void Symbolizer::Resolve(const std::vector<Module>& modules,
                         const std::vector<Frame>& frames) {
  if (options_.program == "none") return;
  std::map<std::size_t, std::set<std::uint64_t>> wanted;
  for (const Frame& frame : frames) {
    if (frame.module >= modules.size()) continue;
    if (!lines_.contains(Key(frame.module, frame.offset))) {
      wanted[frame.module].insert(frame.offset);
    }
  }
  std::erase_if(wanted, [&](const auto& asked) {
    const Module& module = modules[asked.first];
    if (!PerfMap::IsItsName(module.path)) return false;
    ReadPerfMap(module, asked.first, asked.second);
    return true;
  });
  if (program_.empty()) return;
  std::vector<Query> queries;
  for (const auto& [index, offsets] : wanted) {
    // Whatever comes, nobody asks twice.
    for (const std::uint64_t offset : offsets) lines_[Key(index, offset)];
    std::string file = FileOf(modules[index]);
    if (!file.empty()) {
      queries.push_back({index, &modules[index], std::move(file), &offsets});
    }
  }
  // One process for all files, if it can and does; or one for each.
  if (queries.size() > 1 && !IsAddr2line(program_) && Ask(queries).ok()) return;
  for (const Query& query : queries) {
    const absl::Status status = Ask({query});
    if (status.ok()) continue;
    notes_.insert(absl::StrCat(FileName(program_), " failed for ",
                               ForTerminal(query.module->path), ": ",
                               status.message()));
  }
}

void Symbolizer::ReadPerfMap(const Module& module, std::size_t index,
                             const std::set<std::uint64_t>& offsets) {
  const PerfMap map =
      PerfMap::OfFile(module.source.empty() ? module.path : module.source);
  for (const std::uint64_t offset : offsets) {
    std::vector<SourceLine>& lines = lines_[Key(index, offset)];
    const PerfMap::Function* const function = map.At(AskedFor(offset));
    if (function != nullptr) lines.push_back(function->line);
  }
}

absl::Status Symbolizer::Ask(const std::vector<Query>& queries) {
  std::string input;
  for (const Query& query : queries) {
    if (!IsAddr2line(program_) && !CanBeQuoted(query.file)) {
      return absl::InvalidArgumentError("its name cannot be told it");
    }
    for (const std::uint64_t offset : *query.offsets) {
      if (!IsAddr2line(program_)) {
        absl::StrAppend(&input, "\"", query.file, "\" ");
      }
      absl::StrAppendFormat(&input, "0x%x\n", AskedFor(offset));
    }
  }
  const absl::StatusOr<std::string> output =
      OutputOf(Command(program_, queries.front().file), input);
  if (!output.ok()) return output.status();
  Read(queries, *output);
  return absl::OkStatus();
}

void Symbolizer::Read(const std::vector<Query>& queries,
                      const std::string& output) {
  std::vector<SymbolizedAddress> answers = ParseSymbolizerOutput(output);
  auto answer = answers.begin();
  for (const Query& query : queries) {
    const std::map<std::uint64_t, std::uint64_t> functions =
        IsAddr2line(program_) ? FunctionRanges(query.file)
                              : std::map<std::uint64_t, std::uint64_t>();
    for (const std::uint64_t offset : *query.offsets) {
      // A function can be called like an address.
      while (answer != answers.end() && answer->address != AskedFor(offset)) {
        ++answer;
      }
      if (answer == answers.end()) return;
      // Without a place, the name is that of the nearest symbol before.
      std::vector<SourceLine>& lines = answer->lines;
      const bool is_nearest =
          IsAddr2line(program_) && lines.size() == 1 && lines[0].place.empty();
      if (is_nearest && !IsWithin(functions, AskedFor(offset))) lines.clear();
      lines_[Key(query.index, offset)] = std::move(lines);
      ++answer;
    }
  }
}

const std::vector<SourceLine>& Symbolizer::Lines(const Frame& frame) const {
  static const auto* const kNothing = new std::vector<SourceLine>();
  const auto found = lines_.find(Key(frame.module, frame.offset));
  return found == lines_.end() ? *kNothing : found->second;
}

std::vector<SymbolizedAddress> ParseSymbolizerOutput(std::string_view output) {
  std::vector<SymbolizedAddress> addresses;
  std::string_view function;
  bool have_function = false;
  for (const std::string_view line : absl::StrSplit(output, '\n')) {
    std::uint64_t address = 0;
    if (absl::StartsWith(line, "0x") && absl::SimpleHexAtoi(line, &address)) {
      addresses.push_back({address, {}});
      have_function = false;
    } else if (addresses.empty() || line.empty()) {
      continue;
    } else if (!have_function) {
      function = line;
      have_function = true;
    } else {
      have_function = false;
      // "file:12 (discriminator 3)", "??:0", "file:?".
      const std::string_view place = line.substr(0, line.find(" ("));
      SourceLine found;
      if (function != "??") found.function = ReadableName(function);
      if (!absl::StartsWith(place, "?") && !absl::EndsWith(place, ":0") &&
          !absl::EndsWith(place, ":?")) {
        found.place = std::string(place);
      }
      const bool known = !found.function.empty() || !found.place.empty();
      if (known) addresses.back().lines.push_back(std::move(found));
    }
  }
  return addresses;
}

}  // namespace hakmem::tools
