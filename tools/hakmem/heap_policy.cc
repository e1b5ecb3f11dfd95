#include "tools/hakmem/heap_policy.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

ABSL_FLAG(unsigned, frames, hakmem::tools::FramePolicy().most_frames,
          "How many frames of a place the text shows, at least 1.");
ABSL_FLAG(std::string, focus, "",
          "Only places with a frame that this regular expression matches: its "
          "function, source or module.");
ABSL_FLAG(std::string, ignore, "",
          "No places with a frame that this regular expression matches.");
ABSL_FLAG(std::string, hide, "",
          "Places without the frames that this regular expression matches.");
ABSL_FLAG(
    bool, no_fold, false,
    "Shows malloc, containers, strings and other wrappers, too, that are "
    "folded into the place that called them, and what begins each stack.");

namespace hakmem::tools {

absl::StatusOr<FramePolicy> AskedPolicy() {
  FramePolicy policy;
  policy.fold = !absl::GetFlag(FLAGS_no_fold);
  policy.most_frames = absl::GetFlag(FLAGS_frames);
  if (policy.most_frames == 0) {
    return absl::InvalidArgumentError("--frames is at least 1");
  }
  const struct {
    const char* name;
    std::string expression;
    Pattern& pattern;
  } flags[] = {{"focus", absl::GetFlag(FLAGS_focus), policy.focus},
               {"ignore", absl::GetFlag(FLAGS_ignore), policy.ignore},
               {"hide", absl::GetFlag(FLAGS_hide), policy.hide}};
  for (const auto& flag : flags) {
    const absl::StatusOr<Pattern> pattern = Pattern::Make(flag.expression);
    if (!pattern.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag.name, "=", ForTerminal(flag.expression), ": ",
                       pattern.status().message()));
    }
    flag.pattern = *pattern;
  }
  return policy;
}

bool AsksForFrames() {
  return absl::GetFlag(FLAGS_frames) != FramePolicy().most_frames ||
         absl::GetFlag(FLAGS_no_fold) ||
         !absl::StrCat(absl::GetFlag(FLAGS_focus), absl::GetFlag(FLAGS_ignore),
                       absl::GetFlag(FLAGS_hide))
              .empty();
}

}  // namespace hakmem::tools
