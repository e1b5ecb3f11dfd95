// What the tools have to know of an ELF file on disk.
#ifndef HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_
#define HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_

#include <string>

namespace hakmem::tools {

// The build id in lower-case hexadecimal; "" for a file that has none, cannot
// be read or is no ELF file of this machine's kind.
std::string BuildIdOfFile(const std::string& path);

// Whether the file is a program that the dynamic loader has no part in, so that
// nothing can be preloaded into it.
bool IsStaticProgram(const std::string& path);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_ELF_FILE_H_
