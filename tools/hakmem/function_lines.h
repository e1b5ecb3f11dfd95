// The functions and lines of an ELF file, by elfutils' libdwfl: from DWARF in
// the file or a separate one, else from the symbol tables.
//
// The library reads what others have made, and may fail at it: Symbolizer calls
// this in a process apart. Not for several threads.
#ifndef HAKMEM_TOOLS_HAKMEM_FUNCTION_LINES_H_
#define HAKMEM_TOOLS_HAKMEM_FUNCTION_LINES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tools/hakmem/debug_files.h"

namespace hakmem::tools {

struct SourceLine {
  std::string function;  // demangled, C++ and Rust; "" when unknown
  std::string place;     // "file.c:12"; "" when unknown
};

struct FunctionLines {
  bool has_lines = false;  // the file, or one beside it, has DWARF
  // Of each address, in their order; the innermost first.
  std::vector<std::vector<SourceLine>> calls;
};

// The calls that return to these addresses, as the file says them. Separate
// debug information is looked for in `folder` first; "": in the system's
// places.
FunctionLines FunctionLinesOf(const NamedFile& file, const std::string& folder,
                              const std::set<std::uint64_t>& addresses);

// C++'s and Rust's names as their authors wrote them; all others as they are.
std::string Demangled(const std::string& name);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FUNCTION_LINES_H_
