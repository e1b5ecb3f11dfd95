// The options with which a process, or the one of a core file, has started.
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_OPTIONS_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/process_image.h"

namespace hakmem::tools {

struct ProcessOption {
  std::string name;
  std::string value;   // with its unit
  std::string origin;  // default, environment or program
};

// Those that the variant has, of a hakmem of this version. Empty: it is another
// build.
std::vector<ProcessOption> ReadOptionsOf(const ProcessImage& image,
                                         std::string_view variant);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_OPTIONS_H_
