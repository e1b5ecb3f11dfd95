// The cases: each brings about one way for an allocation to fail.
#ifndef HAKMEM_TOOLS_PROVOKE_CASES_H_
#define HAKMEM_TOOLS_PROVOKE_CASES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace hakmem::provoke {

struct Settings {
  // Of the block that is asked for again and again; 0: the case's own choice.
  std::size_t size = 0;
  // Whether settings of the whole system may be changed for a moment.
  bool system = false;
};

struct Verdict {
  // Why the machine does not permit the case; empty when it was run.
  std::string not_permitted = {};
  // What else is to be told, in a sentence; may be empty.
  std::string note = {};
  // Whether the failure came.
  bool provoked = false;
};

struct Case {
  const char* name;
  // Of the event that the failing call should leave: "MapFail", "rlimit_as".
  const char* reason;
  const char* detail;
  const char* sentence;
  // What the process must have been started with, or null.
  const char* option_name;
  const char* option_value;
  Verdict (*run)(const Settings& settings);
};

std::vector<Case> ThresholdCases();
std::vector<Case> ExhaustionCases();
std::vector<Case> KernelCases();
std::vector<Case> CgroupCases();
std::vector<Case> SystemCases();
std::vector<Case> ProgramCases();

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_CASES_H_
