// Names of functions and lines for addresses in modules, offline: by
// llvm-symbolizer or addr2line, from the files on this machine.
//
// A file whose build id is not the one in the trace is another build, whose
// names would be wrong: it is not used, and notes() says so.
#ifndef HAKMEM_TOOLS_HAKMEM_SYMBOLIZER_H_
#define HAKMEM_TOOLS_HAKMEM_SYMBOLIZER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {

struct SourceLine {
  std::string function;  // demangled, C++ and Rust; "" when unknown
  std::string place;     // "file.c:12"; "" when unknown
};

struct SymbolizerOptions {
  std::string program;         // "": the first that is found; "none": no names
  std::string symbols_folder;  // searched before the system's own folders
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options);

  // Looks all frames up that are not known yet: one process of llvm-symbolizer
  // for all modules, or one of addr2line per module.
  void Resolve(const std::vector<Module>& modules,
               const std::vector<Frame>& frames);

  // What others have told of a frame; nobody is asked.
  void Know(const Frame& frame, const std::vector<SourceLine>& lines) {
    lines_.try_emplace(Key(frame.module, frame.offset), lines);
  }

  // The functions at a return address, with those that were inlined first; no
  // element when nothing is known.
  const std::vector<SourceLine>& Lines(const Frame& frame) const;

  // What could not be done, and why; each once.
  const std::set<std::string>& notes() const { return notes_; }

 private:
  using Key = std::pair<std::size_t, std::uint64_t>;

  std::string FileOf(const Module& module);
  // Of code that the process has compiled for itself (perf_map.h).
  void ReadPerfMap(const Module& module, std::size_t index,
                   const std::set<std::uint64_t>& offsets);
  // The addresses in one file that are asked for.
  struct Query {
    std::size_t index;  // the module's
    const Module* module;
    std::string file;  // where its names are
    const std::set<std::uint64_t>* offsets;
  };
  // By one process; addr2line takes one query only.
  absl::Status Ask(const std::vector<Query>& queries);
  // Answers come in the order of the questions.
  void Read(const std::vector<Query>& queries, const std::string& output);

  SymbolizerOptions options_;
  std::string program_;  // its path; "" when there is none
  std::map<Key, std::vector<SourceLine>> lines_;
  std::set<std::string> notes_;
};

// What a symbolizer says of one address, in the style of addr2line -a -f -i.
// `address` is the one that it was asked for.
struct SymbolizedAddress {
  std::uint64_t address = 0;
  std::vector<SourceLine> lines;
};
std::vector<SymbolizedAddress> ParseSymbolizerOutput(std::string_view output);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SYMBOLIZER_H_
