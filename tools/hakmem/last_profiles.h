// The heap profiles of a program that runs, kept from outside for the case that
// the kernel kills it.
#ifndef HAKMEM_TOOLS_HAKMEM_LAST_PROFILES_H_
#define HAKMEM_TOOLS_HAKMEM_LAST_PROFILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace hakmem::tools {

class LastProfiles {
 public:
  // `path` is written at each look: who kills the program may kill this
  // process, too. "": nothing is kept.
  explicit LastProfiles(std::string path) : path_(std::move(path)) {}

  // Reads the profiles of the process and of those below it, as far as they
  // run on hakmem and may be read.
  void Look(int process);

  // A heap profile of each process, the last one of it; "": there is none.
  std::string Lines() const;

 private:
  // Those that end are kept, too: the newest.
  static constexpr std::size_t kMost = 16;
  struct Last {
    std::uint64_t look = 0;
    std::string lines;
  };

  std::string path_;
  std::uint64_t looks_ = 0;
  std::map<int, Last> by_process_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_LAST_PROFILES_H_
