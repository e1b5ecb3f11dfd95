// Which programs a process and its children execute, as far as a look now and
// then shows: one that runs for a moment only is missed.
#ifndef HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_
#define HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_

#include <set>
#include <string>

namespace hakmem::tools {

// Adds the paths of what these processes run now.
void AddProgramsOf(int process, std::set<std::string>& programs);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CHILD_PROGRAMS_H_
