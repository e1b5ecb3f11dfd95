#include "tools/hakmem/run_summary.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/hakmem/advice.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kAllocation[] = {
    "malloc",         "calloc",        "realloc",  "reallocarray", "free",
    "posix_memalign", "aligned_alloc", "memalign", "valloc",       "pvalloc"};

// The file system that holds a file or would hold it has no room.
bool IsFull(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct statvfs facts;
  return ::statvfs(folder.c_str(), &facts) == 0 && facts.f_blocks > 0 &&
         facts.f_bavail == 0;
}

// Why nobody could write to the path; "" if that is not to be seen.
std::string WhyNotWritten(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  if (::access(exists ? path.c_str() : folder.c_str(), W_OK) != 0) {
    return absl::StrCat(" (", std::strerror(errno), ")");
  }
  if (IsFull(path)) return absl::StrCat(" (", std::strerror(ENOSPC), ")");
  return "";
}

}  // namespace

bool IsOfMusl(const std::string& program) {
  return absl::StrContains(LoaderOf(program).value_or(""), "/ld-musl-");
}

std::string WhyNotLoaded(const std::string& program) {
  std::string_view obstacle;
  struct stat facts;
  const std::optional<std::string> loader = LoaderOf(program);
  if (loader == "") {
    obstacle = "is linked statically";
  } else if (IsOfMusl(program)) {
    obstacle = "runs on musl, and this hakmem on glibc";
  } else if (::stat(program.c_str(), &facts) == 0 &&
             (((facts.st_mode & S_ISUID) != 0 && facts.st_uid != ::getuid()) ||
              ((facts.st_mode & S_ISGID) != 0 && facts.st_gid != ::getgid()))) {
    obstacle = "runs with raised privileges";
  } else {
    return "";
  }
  return absl::StrCat(ForTerminal(program), " ", obstacle,
                      ", so hakmem could not be loaded into it");
}

std::string WhatWentElsewhere(const std::string& program,
                              std::optional<std::uint64_t> asked) {
  const std::vector<std::string> own = DefinedFunctions(
      program, {std::begin(kAllocation), std::end(kAllocation)});
  const std::string name = ForTerminal(program);
  if (own.empty()) {
    if (asked != 0) return "";
    return absl::StrCat(name,
                        " asked hakmem for nothing: it allocates nothing, or "
                        "has a malloc of its own");
  }
  // Then hakmem's options hold for that one.
  if (!DefinedFunctions(program, {"hakmem_version"}).empty()) return "";
  return absl::StrCat(name, " brings its own ", absl::StrJoin(own, ", "),
                      asked.value_or(0) == 0
                          ? ", so nothing went to hakmem"
                          : ", so these calls did not go to hakmem");
}

std::vector<std::string> WhatOthersKeep(const std::set<std::string>& programs) {
  constexpr std::size_t kMost = 5;
  // How much a child has asked of hakmem is not known.
  constexpr std::uint64_t kSomething = 1;
  std::vector<std::string> sentences;
  std::uint64_t more = 0;
  for (const std::string& program : programs) {
    if (!DefinedFunctions(program, {"hakmem_version"}).empty()) continue;
    std::string sentence = WhyNotLoaded(program);
    if (sentence.empty()) sentence = WhatWentElsewhere(program, kSomething);
    if (sentence.empty()) continue;
    if (sentences.size() < kMost) {
      sentences.push_back(std::move(sentence));
    } else {
      ++more;
    }
  }
  if (more > 0) {
    sentences.push_back(absl::StrCat(
        "so it is with ", Count(more, "other program", "other programs")));
  }
  return sentences;
}

std::string WhyFailuresMayBeMissing(const Session& session,
                                    const std::string& trace,
                                    const std::string& path) {
  if (path.empty()) {
    return absl::StrCat(
        "whether a call failed is not known here: HAKMEM_ACE_TRACE=",
        ForTerminal(trace), " is no file");
  }
  const Analysis& analysis = session.analysis();
  if (analysis.processes().empty()) {
    return absl::StrCat(
        "whether a call failed is not known: nothing of hakmem's was written "
        "to ",
        ForTerminal(path), WhyNotWritten(path));
  }
  std::vector<std::string> reasons;
  std::uint64_t damaged = 0;
  for (const Input& input : session.inputs()) damaged += input.problem_count;
  if (damaged > 0) {
    reasons.push_back(Count(damaged, "line is damaged", "lines are damaged"));
  }
  if (analysis.dropped() > 0) {
    reasons.push_back(Count(analysis.dropped(), "failure was not written",
                            "failures were not written"));
  }
  const bool all_ended =
      std::all_of(analysis.processes().begin(), analysis.processes().end(),
                  [](const Process& process) { return process.ended; });
  if (!all_ended && IsFull(path)) {
    reasons.push_back(absl::StrCat(std::strerror(ENOSPC)));
  }
  if (reasons.empty()) return "";
  return absl::StrCat("more calls may have failed than ", ForTerminal(path),
                      " says: ", absl::StrJoin(reasons, "; "));
}

namespace {

constexpr std::size_t kMaxCauses = 5;
constexpr std::size_t kColumns = 80;

using Json = nlohmann::json;

// Throws where there is none.
std::uint64_t NumberIn(const Json& json, const char* key) {
  return json.at(key).get_ref<const Json::number_unsigned_t&>();
}

// What stands for the trace on a command line: where each process has a file,
// a pattern.
std::string TraceForShell(std::string_view trace) {
  std::string words;
  std::string_view process;
  for (const std::string_view part : absl::StrSplit(trace, "%p")) {
    words += process;
    if (!part.empty()) words += ForShell(part);
    process = "[0-9]*";
  }
  return words;
}

}  // namespace

void AddPeaks(std::string_view statistics, Peaks& peaks) {
  for (std::string_view line : absl::StrSplit(statistics, '\n')) {
    // Before it may stand half a line, of a process that was killed meanwhile.
    line.remove_prefix(std::min(line.rfind("{\"pid\":"), line.size()));
    try {
      const Json json = Json::parse(line.begin(), line.end());
      // Who was refused has asked, too.
      auto asked = json.value("failures", std::uint64_t{0});
      for (const Json& route : json.at("routes")) {
        asked += NumberIn(route, "allocations");
      }
      const std::uint64_t mapped = NumberIn(json, "peak_mapped_bytes");
      const auto& program = json.at("program").get_ref<const std::string&>();
      peaks.asked[NumberIn(json, "pid")] += asked;
      if (mapped < peaks.mapped) continue;
      peaks.mapped = mapped;
      peaks.mapped_by = program;
    } catch (const Json::exception&) {
      // Another program's line.
    }
  }
}

std::string RunSummary(const Session& session, const Peaks& peaks,
                       std::string_view trace) {
  const Analysis& analysis = session.analysis();
  if (analysis.causes().empty()) return "";
  std::string text = absl::StrCat("hakmem: ", Headline(analysis), "\n");
  const std::vector<std::size_t> ranked = analysis.Ranked();
  for (std::size_t i = 0; i < std::min(ranked.size(), kMaxCauses); ++i) {
    const Cause& cause = analysis.causes()[ranked[i]];
    text += Wrapped(absl::StrCat("* ", CauseName(cause), ", ", Outcome(cause),
                                 ": ", AdviceFor(cause.example).sentence),
                    kColumns, 2, 2);
  }
  if (ranked.size() > kMaxCauses) {
    absl::StrAppend(
        &text, "  * and ",
        Count(ranked.size() - kMaxCauses, "other cause", "other causes"), "\n");
  }
  std::uint64_t mapped = peaks.mapped;
  std::string by = peaks.mapped_by;
  for (const Process& process : analysis.processes()) {
    if (process.peak_mapped > mapped) {
      mapped = process.peak_mapped;
      by = process.program;
    }
  }
  if (mapped > 0) {
    absl::StrAppend(&text, "  at most ", Bytes(mapped), " mapped for blocks (",
                    ForTerminal(by), ")\n");
  }
  absl::StrAppend(&text, "  what to do: hakmem explain ", TraceForShell(trace),
                  "\n");
  return text;
}

}  // namespace hakmem::tools
