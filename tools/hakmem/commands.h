// The subcommands, each in the source of its name; purge and option in control.
#ifndef HAKMEM_TOOLS_HAKMEM_COMMANDS_H_
#define HAKMEM_TOOLS_HAKMEM_COMMANDS_H_

#include <optional>
#include <string>

#include "absl/flags/declare.h"
#include "tools/hakmem/command_line.h"

// Flags with one meaning for several: of explain, and of trace.
ABSL_DECLARE_FLAG(std::string, html);
ABSL_DECLARE_FLAG(bool, json);
ABSL_DECLARE_FLAG(unsigned, sites);
ABSL_DECLARE_FLAG(std::string, symbolizer);
ABSL_DECLARE_FLAG(std::string, symbols);
ABSL_DECLARE_FLAG(std::string, pprof);
ABSL_DECLARE_FLAG(std::optional<unsigned>, top);

namespace hakmem::tools {

extern const Command kRunCommand;
extern const Command kExplainCommand;
extern const Command kFailuresCommand;
extern const Command kHeapCommand;
extern const Command kWatchCommand;
extern const Command kStatsCommand;
extern const Command kTopCommand;
extern const Command kTraceCommand;
extern const Command kServeCommand;
extern const Command kPurgeCommand;
extern const Command kOptionCommand;

// What follows a trace's name in that of the heap profiles which `hakmem run
// --keep-last` leaves beside it.
inline constexpr char kLastProfileEnding[] = ".heap";

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_COMMANDS_H_
