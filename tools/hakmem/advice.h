// What is known of each cause: what it means and what to do about it.
//
// The knowledge is one table (advice_table.cc). Its texts have names in braces,
// like {use}, that are replaced by what an event says.
#ifndef HAKMEM_TOOLS_HAKMEM_ADVICE_H_
#define HAKMEM_TOOLS_HAKMEM_ADVICE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {

// One way out.
struct Remedy {
  std::string_view where;  // "Shell", "systemd", "Docker", "The program" …
  std::string_view text;   // a sentence
  std::string_view command = {};  // to be copied; may be empty
};

struct AdviceEntry {
  std::string_view reason;
  std::string_view detail;
  std::string_view title;     // a few words
  std::string_view sentence;  // with the limit's value, use and needed
  // For an event without those; "": the same.
  std::string_view sentence_without_limit;
  std::string_view background;  // what one has to know to act
  std::span<const Remedy> remedies;
};

// Every entry, in the order of docs/failures.md.
std::span<const AdviceEntry> AdviceTable();

// For a process that the kernel killed because its control group was full.
const AdviceEntry& KilledEntry();

// A remedy with its values in place.
struct FilledRemedy {
  std::string where;
  std::string text;
  std::string command;
};

struct Advice {
  std::string title;
  std::string sentence;
  std::string background;
  std::vector<FilledRemedy> remedies;
};

// What to say of a failure. A cause that the table does not have gets an entry
// that says so.
Advice AdviceFor(const Record& failure);

// Whether a limit of this name counts bytes (vm.max_map_count does not).
bool LimitIsInBytes(std::string_view name);

// A limit's value or use, for people: "1.0 GiB", "65530", "unlimited".
std::string LimitAmount(std::string_view name, std::uint64_t amount);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_ADVICE_H_
