// A program that runs in this one's place: on its terminal, with its signals.
#ifndef HAKMEM_TOOLS_HAKMEM_CHILD_H_
#define HAKMEM_TOOLS_HAKMEM_CHILD_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hakmem::tools {

// The process and those below it, as far as a look now and then shows: one that
// runs for a moment only is missed.
std::vector<int> ProcessesFrom(int process);

// How long to wait for the next look: a second in the end, and long enough that
// looks of this length take a twentieth of the time.
absl::Duration PauseAfter(absl::Duration pause, absl::Duration look);

struct ChildEnd {
  int exit_status = 0;
  int signal = 0;   // that ended it; 0 if it exited
  int process = 0;  // its number
  // Those that it and its children were seen to run.
  std::set<std::string> programs = {};
};

// Runs the program, found like by a shell, with this environment, until it
// ends. Signals that this process gets meanwhile are passed on, except those
// that the terminal has sent to both; when the program is stopped, so is this
// process. `look` is called with its number each second, more often at the
// beginning, and less often where it takes long. The error is of starting it:
// NotFound or PermissionDenied.
absl::StatusOr<ChildEnd> RunChild(const std::vector<std::string>& command,
                                  const std::vector<std::string>& environment,
                                  const std::function<void(int)>& look);

// Ends this process like the child: with its status, or by its signal.
[[noreturn]] void EndLike(const ChildEnd& end);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CHILD_H_
