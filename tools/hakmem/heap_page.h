// Heap profiles as a page of flame graphs.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_PAGE_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_PAGE_H_

#include <string>

#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {

// Live, peak and allocated bytes; `report.by` is shown first.
std::string HeapAsPage(const HeapReport& report);

// What has grown and what has shrunk, and the same of the second file.
std::string HeapDiffAsPage(const HeapDiff& diff);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_PAGE_H_
