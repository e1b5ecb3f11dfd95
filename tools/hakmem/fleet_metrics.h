// The statistics of all processes as one text of OpenMetrics.
#ifndef HAKMEM_TOOLS_HAKMEM_FLEET_METRICS_H_
#define HAKMEM_TOOLS_HAKMEM_FLEET_METRICS_H_

#include <cstddef>
#include <string>

#include "tools/hakmem/fleet.h"

namespace hakmem::tools {

inline constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Of the `most` first processes of the view; the others are counted.
std::string FleetAsOpenMetrics(const FleetView& view, std::size_t most);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FLEET_METRICS_H_
