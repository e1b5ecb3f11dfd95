// Names of functions and lines for addresses in modules, from the files on this
// machine; where DEBUGINFOD_URLS is set, debug information from these servers.
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
#include <string_view>
#include <utility>
#include <vector>

#include "tools/hakmem/debug_files.h"
#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/function_lines.h"

namespace hakmem::tools {

struct SymbolizerOptions {
  std::string program;         // "none": no names; no other has an effect
  std::string symbols_folder;  // searched before the system's own folders
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options);

  // Looks all frames up that are not known yet, in a process apart.
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
  // The addresses that are asked for, by module.
  using Offsets = std::map<std::size_t, std::set<std::uint64_t>>;

  // The addresses in one file that are asked for.
  struct Query {
    std::size_t index = 0;  // the module's
    const Module* module = nullptr;
    NamedFile file;  // where its names are
    const std::set<std::uint64_t>* offsets = nullptr;
  };

  NamedFile FileOf(const Module& module);
  // Of a language's functions, where its runtime is in stacks.
  void NoteMissingNames(const std::vector<Module>& modules,
                        const Offsets& wanted);
  // Of code that the process has compiled for itself (perf_map.h).
  void ReadPerfMap(const Module& module, std::size_t index,
                   const std::set<std::uint64_t>& offsets);
  // From `begin` on; where it got to.
  std::size_t Ask(const std::vector<Query>& queries, std::size_t begin);
  // Answers are what Write() in symbolizer.cc makes. False: they are cut off.
  bool Read(const Query& query, std::string_view& answers);
  void NoteMissingLines(const Module& module);

  SymbolizerOptions options_;
  std::map<Key, std::vector<SourceLine>> lines_;
  std::set<std::string> notes_;
  std::set<std::string> without_lines_;  // paths of modules
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SYMBOLIZER_H_
