// The calls of a stack as reports show them.
#ifndef HAKMEM_TOOLS_HAKMEM_CALL_NAMES_H_
#define HAKMEM_TOOLS_HAKMEM_CALL_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

// A function in a stack.
struct NamedCall {
  std::string function;     // "libfoo.so.1+0x12f0" when it has no name
  std::string text;         // "grow at server.c:12"
  std::string place = "";   // "server.c:12"; "" when unknown
  std::string module = "";  // the path of its file; "": it is in none
  bool has_name = true;
};

// Adds the functions at an address in a file, inlined ones first; "file+0x…" if
// no name is known. An empty path: it is in no file.
void AddNamedCalls(const std::vector<SourceLine>& lines, std::string_view path,
                   std::uint64_t offset, std::vector<NamedCall>& calls);

// Drops the innermost ones that only pass memory on (frame_policy.h).
void DropPassingOn(std::vector<NamedCall>& calls);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CALL_NAMES_H_
