// What a subcommand says of what goes wrong.
#ifndef HAKMEM_TOOLS_HAKMEM_COMPLAINT_H_
#define HAKMEM_TOOLS_HAKMEM_COMPLAINT_H_

#include <string_view>

namespace hakmem::tools {

// Whose complaints follow.
void SetComplainer(std::string_view subcommand);
// On standard error: "hakmem SUBCOMMAND: TEXT".
void Complain(std::string_view text);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_COMPLAINT_H_
