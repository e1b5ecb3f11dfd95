// Which frames of a stack say something: allocators and their wrappers are
// folded into the place that called them, and the user has others left out.
#ifndef HAKMEM_TOOLS_HAKMEM_FRAME_POLICY_H_
#define HAKMEM_TOOLS_HAKMEM_FRAME_POLICY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hakmem::tools {

struct NamedCall;

// A name without return type, parameters and what surrounds a Rust type:
// "std::vector<int>::push_back".
std::string_view QualifiedName(std::string_view function);

struct Runtime;
// Whose file it is (frame_table.h); null: of no language's runtime.
const Runtime* RuntimeOf(std::string_view path);

// How many of the innermost calls only pass memory on; 0 unless there are
// others that say something.
std::size_t PassingOn(const std::vector<NamedCall>& calls);

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
