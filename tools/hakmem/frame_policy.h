// Which frames of a stack say something: allocators and their wrappers are
// folded into the place that called them, and the user has others left out.
#ifndef HAKMEM_TOOLS_HAKMEM_FRAME_POLICY_H_
#define HAKMEM_TOOLS_HAKMEM_FRAME_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

// A function in a stack.
struct NamedCall {
  std::string function;     // "libfoo.so.1+0x12f0" when it has no name
  std::string text;         // "grow at server.c:12"
  std::string place = "";   // "server.c:12"; "" when unknown
  std::string module = "";  // the path of its file; "": it is in none
  bool has_name = true;
};

// Adds the functions at an address in a file, inlined ones first; "file+0x…" if
// no name is known. An empty path: it is in no file.
void AddNamedCalls(const std::vector<SourceLine>& lines, std::string_view path,
                   std::uint64_t offset, std::vector<NamedCall>& calls);

// A name without return type, parameters and what surrounds a Rust type:
// "std::vector<int>::push_back".
std::string_view QualifiedName(std::string_view function);

// The table of names (frame_table.cc). A star at the beginning or end stands
// for any rest. The allocator itself, and the C and C++ functions that it
// replaces.
std::span<const std::string_view> AllocatorNames();
// Wrappers and containers, by the name with its namespaces and without
// parameters.
std::span<const std::string_view> WrapperNames();
// Parts of the paths of sources in which nothing but wrappers is.
std::span<const std::string_view> WrapperSources();
// What begins each stack, and says nothing of it.
std::span<const std::string_view> StarterNames();
// A file of a language's runtime, and what brings the names of the language's
// functions (perf_map.h); "": another file of the runtime says so.
struct Runtime {
  std::string_view file;
  std::string_view names;
};
std::span<const Runtime> Runtimes();
// Whose file it is; null: of no language's runtime.
const Runtime* RuntimeOf(std::string_view path);

// Neither passes memory on, nor begins each stack.
bool SaysSomething(const NamedCall& call);
bool IsStarter(const NamedCall& call);

// How many of the innermost calls only pass memory on; 0 unless there are
// others that say something.
std::size_t PassingOn(const std::vector<NamedCall>& calls);

// The innermost call of each stack in a line: without a name, the first with
// one of its module, or of code that the process has compiled itself. Where
// lines are alike, some of their callers stand behind, each function once:
// "copy < Parse < main".
std::vector<std::string> ToldApart(
    const std::vector<std::vector<NamedCall>>& stacks);

// An extended regular expression, of which any part of a text may be a match.
// As with pprof, (?i) at the beginning makes letters equal, and \d is a digit.
class Pattern {
 public:
  // "": it matches nothing. The error is a sentence's end.
  static absl::StatusOr<Pattern> Make(const std::string& expression);

  bool is_empty() const { return compiled_ == nullptr; }
  bool Matches(const std::string& text) const;
  // Its function, source or module does.
  bool Matches(const NamedCall& call) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

// What is shown of stacks, with pprof's meaning: a stack with a call that
// `focus` matches, and none that `ignore` does, without those that `hide` does.
struct FramePolicy {
  Pattern focus;
  Pattern ignore;
  Pattern hide;
  bool fold = true;
  std::size_t most_frames = 8;  // of a place in a text

  bool selects() const {
    return !focus.is_empty() || !ignore.is_empty() || !hide.is_empty();
  }
  bool Selects(const std::vector<NamedCall>& calls) const;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FRAME_POLICY_H_
