// What the kernel says of this process; read without allocating.
#ifndef HAKMEM_TOOLS_PROVOKE_PROCESS_FACTS_H_
#define HAKMEM_TOOLS_PROVOKE_PROCESS_FACTS_H_

#include <cstddef>

namespace hakmem::provoke {

// The number that follows `name` in the file, or the file's first number when
// `name` is empty. -1: there is none.
long long NumberIn(const char* path, const char* name);

// Writes the file in one call; 0, or errno.
int WriteFile(const char* path, const char* text);

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_PROCESS_FACTS_H_
