// What heap profiles say, with names, and the forms in which it is shown.
#ifndef HAKMEM_TOOLS_HAKMEM_HEAP_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_HEAP_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

// A frame of a stack, with those of its functions that are shown: none where
// it has no name.
struct ShownFrame {
  std::size_t at = 0;  // in the stack
  std::vector<SourceLine> lines;
};

class HeapSymbols {
 public:
  HeapSymbols(const HeapModules& modules, SymbolizerOptions options,
              FramePolicy policy = {});

  void Resolve(const HeapProfiles& profiles);

  // Innermost first, inlined functions too, as the files name them; without
  // what the policy leaves out.
  std::vector<ShownFrame> Shown(const std::vector<Frame>& stack) const;
  std::vector<NamedCall> Calls(const std::vector<Frame>& stack) const;

  // What Calls() says, to compare: an offset is one of its build alone.
  std::vector<std::string> Texts(const std::vector<Frame>& stack) const;

  // The profiles with the frames and the places that the policy shows. Places
  // that look the same are one; or those of the same addresses.
  enum class OnePlace { kOfNames, kOfAddresses };
  HeapProfiles Shown(HeapProfiles profiles,
                     OnePlace one = OnePlace::kOfNames) const;

  const FramePolicy& policy() const { return policy_; }

  const std::vector<Module>& modules() const { return modules_.list(); }
  const std::set<std::string>& notes() const { return symbolizer_.notes(); }

 private:
  void AddCalls(const Frame& frame, const std::vector<SourceLine>& lines,
                std::vector<NamedCall>& calls) const;
  std::string_view PathOf(const Frame& frame) const;
  void KeepShown(HeapProfile& profile, OnePlace one) const;

  const HeapModules& modules_;
  Symbolizer symbolizer_;
  FramePolicy policy_;
};

inline constexpr unsigned kDefaultHeapRows = 20;

struct HeapReport {
  const std::vector<std::string>& files;
  const HeapProfiles& profiles;
  const HeapSymbols& symbols;
  HeapKind by;
  std::uint64_t duration_ns = 0;  // of a difference
};

// "live", "peak", "allocated".
const char* HeapKindName(HeapKind kind);

// Those with bytes of this kind, the one with the most first.
std::vector<const HeapSite*> SitesBy(const HeapProfile& profile, HeapKind kind);

// Of all that are in a stack. A function is once in `cumulative` of a site,
// however often it is in its stack.
struct HeapFunction {
  std::string name;
  HeapKinds self;
  HeapKinds cumulative;
};
// Those with bytes of this kind, the one with the most of its own first.
std::vector<HeapFunction> FunctionsBy(const HeapProfile& profile,
                                      const HeapSymbols& symbols,
                                      HeapKind kind);

// How far off, in bytes, the estimate of a sum is: about two thirds
// of such estimates are nearer.
double StandardError(const HeapFigures& site);

bool HasSamples(const HeapProfile& profile);
// "515.0 MiB live in 9,312 blocks, counted (215.0 MiB resident: …)"; "": it is
// not known.
std::string CountText(const HeapProfile& profile);
// Why there are none, as a sentence.
std::string NoSamples(const HeapProfile& profile);

// Sentences about what the numbers leave out.
std::vector<std::string> HeapRemarks(const HeapProfile& profile);

// "server[77]", for a terminal.
std::string ProcessName(const HeapProfile& profile);
// The same, or "2 processes".
std::string WhoseText(const HeapProfiles& profiles);

// How many standard errors ± stands for: of 100 estimates some 95 are nearer,
// and still 90 where there are few samples.
inline constexpr double kErrorsAround = 2;

// "±12%", of a standard error; "" of nothing.
std::string ErrorText(double error_bytes, std::uint64_t bytes);

std::string HeapAsText(const HeapReport& report, std::size_t max_rows);
std::string HeapAsJson(const HeapReport& report);
// As a page of flame graphs; `report.by` is shown first.
std::string HeapAsPage(const HeapReport& report);

// Lines "main;grow;resize BYTES", for flame graphs; of several processes, each
// below its name.
std::string HeapAsFolded(const HeapReport& report);

// All of it, to be read again.
std::string HeapAsLines(const HeapProfiles& profiles,
                        const HeapModules& modules);

// pprof's profile.proto: allocated, live and peak blocks and bytes.
std::string HeapAsPprof(const HeapReport& report);

inline constexpr std::size_t kHeapTextColumns = 80;

// What bytes of this kind are: "live at the peak".
const char* HeapWhen(HeapKind kind);

// The functions of a site's stack for a terminal, innermost first; at least
// one line.
std::vector<std::string> PlaceLines(const HeapSymbols& symbols,
                                    const HeapSite& site);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_HEAP_REPORT_H_
