// A child process whose surroundings are made good whatever ends it.
#ifndef HAKMEM_TOOLS_PROVOKE_GUARDED_H_
#define HAKMEM_TOOLS_PROVOKE_GUARDED_H_

#include <functional>

namespace hakmem::provoke {

// Forks a child that calls `child` and exits with what it returns; waits for
// it and then calls `restore`, also when SIGINT, SIGTERM or SIGHUP comes: the
// child is killed then, and the signal takes its effect after `restore`.
// Returns the child's wait status.
int RunGuarded(const std::function<int()>& child,
               const std::function<void()>& restore);

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_GUARDED_H_
