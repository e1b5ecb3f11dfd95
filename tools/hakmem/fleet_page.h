// All processes on hakmem as a page and as JSON.
#ifndef HAKMEM_TOOLS_HAKMEM_FLEET_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_FLEET_PAGE_H_

#include <chrono>
#include <string>

#include "tools/hakmem/fleet.h"

namespace hakmem::tools {

// Each process with a link to its flame graph, /heap?pid=PID.
std::string FleetAsPage(const FleetView& view, const std::string& host,
                        std::chrono::system_clock::time_point now);
std::string FleetAsJson(const FleetView& view);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FLEET_PAGE_H_
