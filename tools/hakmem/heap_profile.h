// The heap profiles in a file (docs/heap_profile.md) as values.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_PROFILE_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_PROFILE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/hakmem/failure_record.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

struct HeapFigures {
  std::uint64_t samples = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  double variance = 0;  // of the bytes

  HeapFigures& operator+=(const HeapFigures& more) {
    samples += more.samples;
    blocks += more.blocks;
    bytes += more.bytes;
    variance += more.variance;
    return *this;
  }
};

enum class HeapKind { kLive, kPeak, kAllocated };

struct HeapKinds {
  HeapFigures live;
  HeapFigures peak;
  HeapFigures allocated;

  const HeapFigures& Of(HeapKind kind) const {
    return kind == HeapKind::kLive   ? live
           : kind == HeapKind::kPeak ? peak
                                     : allocated;
  }

  HeapKinds& operator+=(const HeapKinds& more) {
    live += more.live;
    peak += more.peak;
    allocated += more.allocated;
    return *this;
  }
};

// The variances of a site, which a process tells in 65,536ths of the square of
// the mean: of what is live, peak and allocated.
void SetVariances(const std::uint64_t (&told)[3], std::uint64_t mean_bytes,
                  HeapKinds& site);
// Where nothing tells them: right where all samples stand for as much.
void GuessVariances(HeapKinds& site);
// Sites are sampled independently.
void AddVariances(const HeapKinds& site, HeapKinds& totals);

// Where a file lay in the process.
struct HeapMapping {
  std::size_t module = 0;  // index in HeapModules
  std::uint64_t base = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file, of `begin`
};

struct HeapSite {
  HeapKinds figures;
  std::vector<std::uint64_t> addresses;  // innermost first
  // The same in the files, so that sites of other processes can be compared.
  std::vector<Frame> stack;
};

struct HeapCount {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};

struct HeapProfile {
  std::uint64_t pid = 0;
  std::string program;
  // What it calls itself behind that: "worker process" of "nginx: worker
  // process". Of a process that runs.
  std::string title;
  std::string version;
  std::string variant;
  std::uint64_t mean_bytes = 0;
  std::uint64_t time_ns = 0;  // since 1970; 0: not told
  std::vector<HeapMapping> mappings;
  std::vector<HeapSite> sites;
  // Of the last line; sums over the sites where there is none.
  HeapKinds totals;
  // All that is live, counted; of a process or core file alone.
  std::optional<HeapCount> counted;
  std::optional<std::uint64_t> resident_bytes;  // of a process
  std::uint64_t lost_samples = 0;
  bool has_end = false;
  // All sites that the last line counts are there.
  bool whole = false;
  std::uint64_t unreadable_lines = 0;

  // A process notes a peak only once it is well above the last one: where more
  // is live, the peak is now.
  void KeepLiveBelowPeak();
};

// Whether the second is of the same process, later: of what had begun when the
// first was made. A program that is executed anew lies elsewhere in memory.
// Both were read into the same modules.
bool AreOfOneRun(const HeapProfile& before, const HeapProfile& after);

// The modules of all profiles that are read into it, each build once.
class HeapModules {
 public:
  std::size_t Add(const Module& module);
  const std::vector<Module>& list() const { return list_; }

  // Names that a profile brings along.
  using Names =
      std::map<std::pair<std::size_t, std::uint64_t>, std::vector<SourceLine>>;
  void AddNames(const Frame& frame, std::vector<SourceLine> lines) {
    names_.try_emplace({frame.module, frame.offset}, std::move(lines));
  }
  const Names& names() const { return names_; }

 private:
  std::vector<Module> list_;
  Names names_;
  std::map<std::string, std::size_t> index_of_;  // by build id, else path
};

struct HeapProfiles {
  std::vector<HeapProfile> last;  // of each process, in the file's order
  std::size_t in_file = 0;

  bool whole() const { return std::ranges::all_of(last, &HeapProfile::whole); }
  // Those of another file; a process may be in both.
  void Append(HeapProfiles more);
};

// The error is a sentence's end: what the file is, or is not. Lines that are
// no JSON are another program's and passed over.
absl::StatusOr<HeapProfiles> ReadHeapProfiles(std::string_view text,
                                              HeapModules& modules);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_PROFILE_H_
