// Which programs a process and its children execute, as far as a look now and
// then shows: one that runs for a moment only is missed.
#ifndef HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_
#define HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_

#include <set>
#include <string>
#include <vector>

namespace hakmem::tools {

// The process and those below it.
std::vector<int> ProcessesFrom(int process);

// Adds the paths of what these processes run now.
void AddProgramsOf(int process, std::set<std::string>& programs);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_
