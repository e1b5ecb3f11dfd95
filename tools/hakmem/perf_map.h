// Names of functions that a process has compiled for itself, from the file that
// it writes for perf: /tmp/perf-PID.map (node, java, .NET, CPython -X perf).
#ifndef HAKMEM_TOOLS_HAKMEM_PERF_MAP_H_
#define HAKMEM_TOOLS_HAKMEM_PERF_MAP_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

class PerfMap {
 public:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    SourceLine line;
  };

  // Of a process that runs. Nobody but its user, root and who asks may have
  // written it; else it has no functions, as where there is no such file.
  static PerfMap OfProcess(std::uint64_t pid);
  static PerfMap OfFile(const std::string& path);
  // Whether a module's path is such a file's.
  static bool IsItsName(std::string_view path);

  // As the process names it; "": there is none.
  const std::string& path() const { return path_; }
  // Where it can be read.
  const std::string& source() const { return source_; }
  // Null: none is known there. Of several the last that was written.
  const Function* At(std::uint64_t address) const;

  // Lines "BEGIN LENGTH NAME", the numbers in hexadecimal.
  void Read(std::string_view text);

 private:
  void Open(const std::string& source, std::uint32_t user);

  std::string path_;
  std::string source_;
  std::map<std::uint64_t, Function> functions_;  // by begin
};

// "JS:~name /a/b.js:2:21" and "py::name:/a/b.py" are a function and a place.
SourceLine JitName(std::string_view name);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PERF_MAP_H_
