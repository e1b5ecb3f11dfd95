// Standard output, and whether everything has arrived there.
#ifndef HAKMEM_TOOLS_HAKMEM_STANDARD_OUTPUT_H_
#define HAKMEM_TOOLS_HAKMEM_STANDARD_OUTPUT_H_

#include <string_view>

namespace hakmem::tools {

// Writes at once. After a first error nothing more is written.
void PrintOut(std::string_view text);

// The errno of what could not be written; 0: all of it was.
int OutputError();

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_STANDARD_OUTPUT_H_
