// `hakmem explain`: reads failure traces and says what happened and what to do.
#ifndef HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_
#define HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_

#include "tools/hakmem/command_line.h"

namespace hakmem::tools {

extern const Command kExplainCommand;

// What follows a trace's name in that of the heap profiles which `hakmem run
// --keep-last` leaves beside it.
inline constexpr char kLastProfileEnding[] = ".heap";

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_EXPLAIN_H_
