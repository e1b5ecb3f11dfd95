// What the texts about heap profiles share.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_TEXT_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {

inline constexpr std::size_t kHeapTextColumns = 80;

// What bytes of this kind are: "live at the peak".
const char* HeapWhen(HeapKind kind);

// The functions of a site's stack for a terminal, innermost first; at least
// one line.
std::vector<std::string> PlaceLines(const HeapSymbols& symbols,
                                    const HeapSite& site);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_TEXT_H_
