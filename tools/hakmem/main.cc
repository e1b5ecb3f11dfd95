// The `hakmem` command.

#include <span>

#include "tools/hakmem/command_line.h"
#include "tools/hakmem/commands.h"

int main(int argc, char** argv) {
  const hakmem::tools::Command* const commands[] = {
      &hakmem::tools::kRunCommand,      &hakmem::tools::kExplainCommand,
      &hakmem::tools::kFailuresCommand, &hakmem::tools::kHeapCommand,
      &hakmem::tools::kWatchCommand,    &hakmem::tools::kStatsCommand,
      &hakmem::tools::kTopCommand,      &hakmem::tools::kTraceCommand,
      &hakmem::tools::kServeCommand,    &hakmem::tools::kPurgeCommand,
      &hakmem::tools::kOptionCommand,
  };
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  return hakmem::tools::RunCommandLine(commands, arguments.subspan(1));
}
