// What the records of any number of processes say together: causes, the places
// in the programs that met them, and memory over time.
//
// However long a trace is, this stays small: records are counted, examples of
// each cause are kept, and series of points are thinned out.
#ifndef HAKMEM_TOOLS_HAKMEM_ANALYSIS_H_
#define HAKMEM_TOOLS_HAKMEM_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {

// A chain of calls that allocations failed in.
struct CallSite {
  std::string call;          // "malloc"
  std::vector<Frame> stack;  // modules are indexes into Analysis::modules()
  std::uint64_t events = 0;
  std::uint64_t smallest = 0;
  std::uint64_t largest = 0;
};

struct Cause {
  std::string reason;
  std::string detail;
  std::string limit_name;
  std::string limit_source;
  std::uint64_t failed = 0;   // calls that got no memory
  std::uint64_t rescued = 0;  // calls that hakmem found another way for
  std::uint64_t killed = 0;   // processes, by the kernel
  std::map<std::string, std::uint64_t> dispositions;
  std::uint64_t smallest = 0;  // sizes asked for
  std::uint64_t largest = 0;
  std::string first_time;
  std::string last_time;
  std::int64_t first_us = 0;
  std::int64_t last_us = 0;
  std::set<std::size_t> processes;  // indexes into Analysis::processes()
  // The first one with all its evidence.
  Record example;
  std::vector<CallSite> sites;       // in the order in which they were met
  std::uint64_t sites_not_kept = 0;  // events of call sites beyond kMaxSites
};

struct MemoryPoint {
  std::int64_t time_us = 0;
  std::uint64_t granted = 0;
  std::uint64_t cached = 0;
  std::uint64_t mapped = 0;
};

struct FailureMark {
  std::int64_t time_us = 0;
  std::size_t cause = 0;  // index into Analysis::causes()
  bool failed = false;
};

struct Process {
  std::size_t source = 0;  // which input it was found in
  std::uint64_t pid = 0;
  std::string program;
  std::string variant;
  std::string version;
  std::vector<std::pair<std::string, std::string>> options;
  bool ended = false;
  std::uint64_t failed = 0;
  std::uint64_t rescued = 0;
  std::uint64_t dropped = 0;  // failures that are not in the trace
  std::uint64_t peak_mapped = 0;
  std::uint64_t peak_granted = 0;
  std::string first_time;
  std::string last_time;
  std::vector<MemoryPoint> memory;
  std::vector<FailureMark> marks;
};

class Analysis {
 public:
  static constexpr std::size_t kMaxPoints = 2000;
  static constexpr std::size_t kMaxSites = 1000;

  // Returns the index of the cause, or kNone for a record that is no failure.
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t Add(std::size_t source, const Record& record);

  // In the order in which they were met.
  const std::vector<Cause>& causes() const { return causes_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Module>& modules() const { return modules_; }

  // Indexes of causes(), those that matter most first: killed processes, failed
  // calls, rescued calls, then the order in which they came.
  std::vector<std::size_t> Ranked() const;

  std::uint64_t failed() const { return failed_; }
  std::uint64_t rescued() const { return rescued_; }
  std::uint64_t killed() const { return killed_; }
  std::uint64_t dropped() const;

  // Call sites of a cause, the most frequent first.
  static std::vector<const CallSite*> RankedSites(const Cause& cause);

 private:
  std::size_t ProcessOf(std::size_t source, const Record& record);
  std::size_t CauseOf(const Record& record);
  void AddFailure(std::size_t process, std::size_t cause, const Record& record);
  void AddSite(std::size_t cause, const Record& record);
  std::size_t ModuleOf(const Module& module);

  using CauseKey =
      std::tuple<std::string, std::string, std::string, std::string>;
  using SiteKey = std::pair<std::size_t, std::string>;

  std::vector<Cause> causes_;
  std::vector<Process> processes_;
  std::vector<Module> modules_;
  std::map<CauseKey, std::size_t> cause_index_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> process_index_;
  std::map<std::pair<std::string, std::string>, std::size_t> module_index_;
  std::map<SiteKey, std::size_t> site_index_;
  std::uint64_t failed_ = 0;
  std::uint64_t rescued_ = 0;
  std::uint64_t killed_ = 0;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_ANALYSIS_H_
