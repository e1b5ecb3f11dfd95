// Brings about one way for an allocation to fail, for real.
//
//   provoke --list       the cases: name, reason and detail of the event, what
//                        is done, and the option that the process is given
//   provoke NAME         one of them
//
// It knows nothing of hakmem: preload the library, and read what its trace
// says. Exit status: 0 the failure came, 1 it did not, 2 bad usage, 77 this
// machine does not permit the case (standard error says why).
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "tools/provoke/attempt.h"
#include "tools/provoke/cases.h"

ABSL_FLAG(bool, list, false, "print the cases");
ABSL_FLAG(bool, json, false, "print a line of JSON for each failed call");
ABSL_FLAG(
    std::uint64_t, size, 0,
    "of the blocks that fill memory up, in bytes; 0: what suits the case");
ABSL_FLAG(
    bool, system, false,
    "permit cases that change a setting of the whole system for a moment");

namespace hakmem::provoke {
namespace {

constexpr int kNotPermitted = 77;

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& part : {ThresholdCases(), ExhaustionCases(), KernelCases(),
                           CgroupCases(), SystemCases(), ProgramCases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void PrintList() {
  for (const Case& one : AllCases()) {
    std::printf("%-16s %-10s %-14s %s%s%s%s\n", one.name, one.reason,
                one.detail, one.sentence,
                one.option_name == nullptr ? "" : " | ",
                one.option_name == nullptr ? "" : one.option_name,
                one.option_name == nullptr
                    ? ""
                    : ("=" + std::string(one.option_value)).c_str());
  }
}

// hakmem reads its options once: a process that lacks one starts again.
void HaveOption(const Case& wanted, char** arguments) {
  if (wanted.option_name == nullptr) return;
  const char* const value = getenv(wanted.option_name);
  if (value != nullptr && std::strcmp(value, wanted.option_value) == 0) return;
  setenv(wanted.option_name, wanted.option_value, 1);
  execv("/proc/self/exe", arguments);
  std::perror("provoke: cannot start again");
  std::exit(1);
}

void PrintFailure(const Outcome& outcome, bool json) {
  const Request& request = outcome.request;
  if (json) {
    std::printf(
        "{\"call\":\"%s\",\"size\":%zu,\"alignment\":%zu,\"count\":%zu,"
        "\"result\":\"%s\",\"errno\":%d}\n",
        CallName(request.call), request.size, request.alignment, request.count,
        ResultName(outcome.result), outcome.error_number);
    return;
  }
  std::printf(
      "%s of %zu bytes: %s%s%s\n", CallName(request.call), request.size,
      ResultName(outcome.result), outcome.error_number == 0 ? "" : ", ",
      outcome.error_number == 0 ? "" : std::strerror(outcome.error_number));
}

// Small and large blocks are to be had again.
bool IsWell() {
  bool well = true;
  for (const std::size_t size : {100, 5'000, 300'000}) {
    void* const block = malloc(size);
    well = well && block != nullptr;
    if (block != nullptr) std::memset(block, 1, size);
    free(block);
  }
  return well;
}

int Run(const Case& wanted) {
  const Settings settings = {.size = absl::GetFlag(FLAGS_size),
                             .system = absl::GetFlag(FLAGS_system)};
  const bool json = absl::GetFlag(FLAGS_json);
  TheLog();  // while there is memory for it
  const Verdict verdict = wanted.run(settings);
  if (!verdict.not_permitted.empty()) {
    std::fprintf(stderr, "provoke: %s: not here: %s\n", wanted.name,
                 verdict.not_permitted.c_str());
    return kNotPermitted;
  }
  const Log log = TheLog();
  const bool well = IsWell();
  for (std::uint64_t i = 0; i < log.failed && i < Log::kKept; ++i) {
    PrintFailure(log.failures[i], json);
  }
  if (json) {
    std::printf("{\"case\":\"%s\",\"provoked\":%s,\"served\":%" PRIu64
                ",\"failed\":%" PRIu64 ",\"well\":%s}\n",
                wanted.name, verdict.provoked ? "true" : "false", log.served,
                log.failed, well ? "true" : "false");
  } else {
    std::printf("%s: %s; %" PRIu64 " calls served, %" PRIu64
                " failed; afterwards %s%s%s\n",
                wanted.name, verdict.provoked ? "provoked" : "NOT provoked",
                log.served, log.failed, well ? "well" : "NOT well",
                verdict.note.empty() ? "" : "; ", verdict.note.c_str());
  }
  return verdict.provoked ? 0 : 1;
}

}  // namespace
}  // namespace hakmem::provoke

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "brings about one way for an allocation to fail\n"
      "provoke --list\n"
      "provoke [--json] [--size=BYTES] [--system] NAME");
  const std::vector<char*> names = absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_list)) {
    hakmem::provoke::PrintList();
    return 0;
  }
  if (names.size() != 2) {
    std::fputs("usage: provoke --list | provoke [--json] NAME\n", stderr);
    return 2;
  }
  for (const hakmem::provoke::Case& one : hakmem::provoke::AllCases()) {
    if (std::strcmp(one.name, names[1]) != 0) continue;
    hakmem::provoke::HaveOption(one, argv);
    return hakmem::provoke::Run(one);
  }
  std::fprintf(stderr, "provoke: no case is named %s; --list names them\n",
               names[1]);
  return 2;
}
