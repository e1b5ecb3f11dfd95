#include "tools/hakmem/advice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
// What programs that use many mappings are told to set, and what newer systems
// start with.
constexpr std::uint64_t kManyMappings = 1048576;

constexpr AdviceEntry kUnknownCause = {
    "",
    "",
    "A cause that this version does not know",
    "{call} of {size} failed with {reason}/{detail}, which this version of "
    "`hakmem explain` does not know.",
    "",
    "The trace was written by another version of hakmem.",
    {}};

std::uint64_t SumOrUnlimited(std::uint64_t a, std::uint64_t b) {
  return a > kUnlimited - b ? kUnlimited : a + b;
}

// A value that leaves room: twice what is needed now, in whole units.
std::uint64_t Suggested(const Limit& limit, std::uint64_t needed) {
  const std::uint64_t value = limit.value.value_or(0);
  if (!LimitIsInBytes(limit.name)) {
    return std::max(kManyMappings, SumOrUnlimited(value, value));
  }
  const std::uint64_t wanted =
      SumOrUnlimited(std::max(value, limit.use.value_or(0)), needed);
  const std::uint64_t doubled = SumOrUnlimited(wanted, wanted);
  const std::uint64_t up = SumOrUnlimited(doubled, 64 * kMiB - 1);
  return up / (64 * kMiB) * (64 * kMiB);
}

std::string Amount(const Limit& limit, std::optional<std::uint64_t> amount) {
  return amount.has_value() ? LimitAmount(limit.name, *amount)
                            : "an unknown amount";
}

using Values = std::vector<std::pair<std::string, std::string>>;

void AddLimit(const Record& failure, Values& values) {
  const Limit limit = failure.limit.value_or(Limit());
  const std::uint64_t needed = limit.needed.value_or(
      failure.refused.has_value() ? failure.refused->bytes : failure.size);
  const std::uint64_t suggested = Suggested(limit, needed);
  values.insert(
      values.end(),
      {{"{limit}", ForTerminal(limit.name)},
       // A path that was too long has only its end.
       {"{source}",
        absl::StartsWith(limit.source, "/") ? ForShell(limit.source) : "FILE"},
       {"{value}", Amount(limit, limit.value)},
       {"{value_number}", absl::StrCat(limit.value.value_or(0))},
       {"{use}", Amount(limit, limit.use)},
       {"{needed}", LimitAmount(limit.name, needed)},
       {"{needed_number}", absl::StrCat(needed)},
       {"{suggested}", LimitAmount(limit.name, suggested)},
       {"{suggested_number}", absl::StrCat(suggested)},
       {"{suggested_kib}", absl::StrCat(suggested / 1024)},
       {"{suggested_mib}", absl::StrCat(suggested / kMiB)},
       // Three quarters leave room for what is not hakmem's.
       {"{below_mib}", absl::StrCat(limit.value.value_or(0) / 4 * 3 / kMiB)}});
}

void AddMemory(const Record& failure, Values& values) {
  const Memory memory = failure.memory.value_or(Memory());
  const auto bytes = [&failure](std::uint64_t amount) {
    return failure.memory.has_value() ? Bytes(amount) : "an unknown amount";
  };
  // What is granted holds all that is live.
  values.emplace_back("{live}",
                      memory.live || !failure.memory.has_value()
                          ? bytes(memory.live.value_or(0))
                          : absl::StrCat("at most ", bytes(memory.granted)));
  values.emplace_back("{cached}", bytes(memory.cached));
  values.emplace_back("{mapped}", bytes(memory.mapped));
  values.emplace_back("{largest_free}", bytes(memory.largest_free.value_or(0)));
}

// What does not fit; pvalloc has no elements, and rounds its size
// up.
std::string ProductText(const Record& failure) {
  const std::string size = SizeWithSign(failure.size);
  return failure.count.has_value()
             ? absl::StrCat(*failure.count, " elements of ", size,
                            ": the product does not fit")
             : absl::StrCat(size, ", which in whole pages do not fit");
}

// Whether the process that failed runs here: else its number may by now be
// another one's.
bool Runs(const Record& failure) {
  std::ifstream file(absl::StrCat("/proc/", failure.pid, "/comm"));
  std::string name;
  constexpr std::size_t kLongestName = 15;
  return std::getline(file, name) &&
         name == failure.program.substr(0, kLongestName);
}

// The request as the program wrote it: "calloc(3, 24)" and its size in words.
Values ValuesOf(const Record& failure) {
  Values values = {
      {"{call}", ForTerminal(failure.call)},
      {"{size}", SizeWithSign(failure.size)},
      {"{size_number}", absl::StrCat(failure.size)},
      {"{product}", ProductText(failure)},
      {"{alignment}", absl::StrCat(failure.alignment.value_or(0))},
      {"{reason}", ForTerminal(failure.reason)},
      {"{detail}", ForTerminal(failure.detail)},
      {"{pid}", Runs(failure) ? absl::StrCat(failure.pid) : "PID"},
      {"{program}", ForTerminal(failure.program)},
      {"{error}", failure.refused.has_value()
                      ? ForTerminal(failure.refused->error)
                      : "an error"},
      {"{refused_call}", failure.refused.has_value()
                             ? ForTerminal(failure.refused->call)
                             : "a call"},
      {"{refused_bytes}", failure.refused.has_value()
                              ? Bytes(failure.refused->bytes)
                              : "an unknown amount"},
  };
  AddLimit(failure, values);
  AddMemory(failure, values);
  return values;
}

const AdviceEntry& EntryFor(std::string_view reason, std::string_view detail) {
  if (reason == KilledEntry().reason) return KilledEntry();
  for (const AdviceEntry& entry : AdviceTable()) {
    if (entry.reason == reason && entry.detail == detail) return entry;
  }
  return kUnknownCause;
}

}  // namespace

bool LimitIsInBytes(std::string_view name) {
  return name != "vm.max_map_count";
}

std::string LimitAmount(std::string_view name, std::uint64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  return LimitIsInBytes(name) ? Bytes(amount) : absl::StrCat(amount);
}

Advice AdviceFor(const Record& failure) {
  const AdviceEntry& entry = EntryFor(failure.reason, failure.detail);
  const Values values = ValuesOf(failure);
  const auto filled = [&values](std::string_view text) {
    return absl::StrReplaceAll(text, values);
  };
  const bool has_limit =
      failure.limit.has_value() && failure.limit->value.has_value();
  Advice advice;
  advice.title = filled(entry.title);
  const bool same = has_limit || entry.sentence_without_limit.empty();
  advice.sentence =
      filled(same ? entry.sentence : entry.sentence_without_limit);
  advice.background = filled(entry.background);
  for (const Remedy& remedy : entry.remedies) {
    advice.remedies.push_back({std::string(remedy.where), filled(remedy.text),
                               filled(remedy.command)});
  }
  return advice;
}

}  // namespace hakmem::tools
