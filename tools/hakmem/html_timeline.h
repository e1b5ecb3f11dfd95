// One process's memory over time, as a part of explain's page.
//
// Lines are drawn in an SVG that is stretched to its place; every text stands
// outside of it, so that it has the reader's size on a phone and on paper.
#ifndef HAKMEM_TOOLS_HAKMEM_HTML_TIMELINE_H_
#define HAKMEM_TOOLS_HAKMEM_HTML_TIMELINE_H_

#include <string>

#include "tools/hakmem/analysis.h"

namespace hakmem::tools {

// What the lines and marks mean; once for all timelines.
std::string TimelineLegendHtml();

// "" for a process of which nothing can be drawn.
std::string TimelineHtml(const Analysis& analysis, Process process);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HTML_TIMELINE_H_
