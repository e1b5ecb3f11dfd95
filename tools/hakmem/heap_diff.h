// Two heap profiles compared: which sites have grown.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_DIFF_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_DIFF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"

namespace hakmem::tools {

struct HeapGrowth {
  const HeapSite* site = nullptr;  // one of those with this stack
  std::string function = {};       // or that of several sites
  std::size_t sites = 1;
  HeapFigures before = {};
  HeapFigures after = {};
  // Of the growth, in the square of bytes.
  double variance = 0;

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(after.bytes - before.bytes);
  }
  double StandardErrorBytes() const;
  // More than its ±: chance alone does that once in 20 times.
  bool is_sure() const;
};

// Both files' profiles were read into the modules of `symbols`.
struct HeapDiff {
  const std::string& before_path;
  const HeapProfiles& before;
  const std::string& after_path;
  const HeapProfiles& after;
  const HeapSymbols& symbols;
  HeapKind by;
};

// The sites of all processes of a file together, matched by their places in
// the program's files, wherever those lay in memory. The largest growth comes
// first, the largest shrinkage last; what is as it was is left out.
std::vector<HeapGrowth> GrowthBySite(const HeapDiff& diff);

// The functions in the stacks of several of these sites, with what they call;
// of a recursion each site once. Of functions in the same sites the innermost
// says most, and stands for all. The largest growth comes first; what is as it
// was is left out.
std::vector<HeapGrowth> GrowthByFunction(const HeapDiff& diff,
                                         const std::vector<HeapGrowth>& sites);

// Of all sites, and what was lost.
HeapGrowth TotalGrowth(const HeapDiff& diff);

// From the first profile to the last, of all processes; below 0: all of the
// second file are earlier; 0: one does not tell its time.
double SecondsBetween(const HeapDiff& diff);

// Sentences about what the comparison leaves out.
std::vector<std::string> HeapDiffRemarks(const HeapDiff& diff);

std::string HeapDiffAsText(const HeapDiff& diff, std::size_t max_rows);
std::string HeapDiffAsJson(const HeapDiff& diff);
// As a page of flame graphs: what has grown and what has shrunk, and the same
// of the second file.
std::string HeapDiffAsPage(const HeapDiff& diff);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_DIFF_H_
