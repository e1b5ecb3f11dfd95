#include "tools/hakmem/frame_policy.h"

#include <regex.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/hakmem/perf_map.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {

void AddNamedCalls(const std::vector<SourceLine>& lines, std::string_view path,
                   std::uint64_t offset, std::vector<NamedCall>& calls) {
  const std::size_t before = calls.size();
  for (const SourceLine& line : lines) {
    if (line.function.empty()) continue;
    calls.push_back(
        {.function = line.function,
         .text = line.place.empty()
                     ? line.function
                     : absl::StrCat(line.function, " at ", line.place),
         .place = line.place,
         .module = std::string(path)});
  }
  if (calls.size() > before) return;
  std::string name = path.empty()
                         ? absl::StrFormat("%#x", offset)
                         : absl::StrFormat("%s+%#x", FileName(path), offset);
  calls.push_back({.function = name,
                   .text = name,
                   .module = std::string(path),
                   .has_name = false});
}

namespace {

bool Matches(std::string_view name, std::string_view pattern) {
  if (absl::ConsumePrefix(&pattern, "*")) return name.ends_with(pattern);
  return absl::ConsumeSuffix(&pattern, "*") ? name.starts_with(pattern)
                                            : name == pattern;
}

bool IsOneOf(std::string_view name, std::span<const std::string_view> table) {
  return std::ranges::any_of(table, [name](std::string_view pattern) {
    return Matches(name, pattern);
  });
}

bool IsAllocator(const NamedCall& call) {
  const std::string_view name = QualifiedName(call.function);
  // A class may have an operator of its own.
  return IsOneOf(name, AllocatorNames()) ||
         absl::EndsWith(name, "::operator new") ||
         absl::EndsWith(name, "::operator new[]");
}

bool PassesOn(const NamedCall& call) {
  return IsAllocator(call) ||
         IsOneOf(QualifiedName(call.function), WrapperNames()) ||
         std::ranges::any_of(WrapperSources(), [&call](std::string_view part) {
           return absl::StrContains(call.place, part);
         });
}

// The innermost calls for which this holds, and calls without a name beneath
// them: those are the same library's.
std::size_t Innermost(const std::vector<NamedCall>& calls,
                      bool (*holds)(const NamedCall& call)) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (holds(calls[i])) {
      found = i + 1;
    } else if (calls[i].has_name) {
      break;
    }
  }
  return found;
}

// Brackets behind it are none.
constexpr std::string_view kOperator = "operator";

// "<alloc::vec::Vec<T> as core::iter::FromIterator>::from_iter" is the type's,
// or the trait's where that is the program's own, or the type no path.
std::string_view OutsideOfRustType(std::string_view name) {
  if (!absl::ConsumePrefix(&name, "<")) return name;
  while (absl::ConsumePrefix(&name, "&") || absl::ConsumePrefix(&name, "[") ||
         absl::ConsumePrefix(&name, "mut ")) {
  }
  const std::size_t as = name.find(" as ");
  if (as == std::string_view::npos) return name;
  const std::string_view trait = name.substr(as + 4);
  return absl::StrContains(name.substr(0, as), "::") &&
                 IsOneOf(trait, WrapperNames())
             ? name
             : trait;
}

}  // namespace

bool SaysSomething(const NamedCall& call) {
  return !PassesOn(call) && !IsStarter(call);
}

bool IsStarter(const NamedCall& call) {
  return IsOneOf(call.function, StarterNames());
}

std::string_view QualifiedName(std::string_view function) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < function.size(); ++i) {
    const char letter = function[i];
    const std::string_view rest = function.substr(i);
    if (depth == 0 && absl::StartsWith(rest, kOperator) &&
        (i == begin || function[i - 1] == ':')) {
      const std::size_t end = function.find('(', i + kOperator.size() + 1);
      return function.substr(begin, end - begin);
    }
    if (absl::StartsWith(rest, "->")) {
      ++i;
    } else if (depth == 0 && letter == ' ') {
      if (absl::StartsWith(rest, " [clone")) {
        return function.substr(begin, i - begin);
      }
      begin = i + 1;
    } else if (depth == 0 && letter == '(' && i > begin &&
               function[i - 1] != ':' && function[i - 1] != ' ' &&
               !absl::EndsWith(function.substr(begin, i - begin), "decltype")) {
      return function.substr(begin, i - begin);
    } else if (absl::StrContains("<({[", letter)) {
      ++depth;
    } else if (absl::StrContains(">)}]", letter) && depth > 0) {
      --depth;
    }
  }
  return OutsideOfRustType(function.substr(begin));
}

const Runtime* RuntimeOf(std::string_view path) {
  for (const Runtime& runtime : Runtimes()) {
    if (Matches(FileName(path), runtime.file)) return &runtime;
  }
  return nullptr;
}

std::size_t PassingOn(const std::vector<NamedCall>& calls) {
  for (const auto holds : {PassesOn, IsAllocator}) {
    const std::size_t found = Innermost(calls, holds);
    const auto first = calls.begin() + static_cast<std::ptrdiff_t>(found);
    if (holds == PassesOn ? std::any_of(first, calls.end(), SaysSomething)
                          : first != calls.end()) {
      return found;
    }
  }
  return 0;
}

namespace {

// So that `depth` calls with names are told.
std::string Told(const std::vector<NamedCall>& calls, std::size_t depth) {
  if (calls.empty()) return "(no stack)";
  auto at = std::ranges::find_if(calls, [&calls](const NamedCall& call) {
    return call.has_name && (call.module == calls.front().module ||
                             PerfMap::IsItsName(call.module));
  });
  if (at == calls.end()) at = calls.begin();
  std::vector<std::string> told = {at->text};
  while (told.size() < depth && ++at != calls.end()) {
    if (!at->has_name || std::ranges::count(told, at->text) != 0) continue;
    told.push_back(at->text);
  }
  return absl::StrJoin(told, " < ");
}

}  // namespace

std::vector<std::string> ToldApart(
    const std::vector<std::vector<NamedCall>>& stacks) {
  constexpr std::size_t kDeepest = 4;
  std::vector<std::string> lines(stacks.size());
  for (std::size_t depth = 1; depth <= kDeepest; ++depth) {
    const std::vector<std::string> before = lines;
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      if (depth > 1 && std::ranges::count(before, before[i]) == 1) continue;
      lines[i] = Told(stacks[i], depth);
    }
  }
  return lines;
}

struct Pattern::Compiled {
  Compiled() = default;
  ~Compiled() {
    if (status == 0) ::regfree(&expression);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  regex_t expression = {};
  int status = 0;
};

absl::StatusOr<Pattern> Pattern::Make(const std::string& expression) {
  Pattern pattern;
  if (expression.empty()) return pattern;
  std::string_view rest = expression;
  const bool any_case = absl::ConsumePrefix(&rest, "(?i)");
  const std::string text = absl::StrReplaceAll(rest, {{"\\d", "[0-9]"}});
  auto compiled = std::make_shared<Compiled>();
  compiled->status =
      ::regcomp(&compiled->expression, text.c_str(),
                REG_EXTENDED | REG_NOSUB | (any_case ? REG_ICASE : 0));
  if (compiled->status != 0) {
    char why[256];
    ::regerror(compiled->status, &compiled->expression, why, sizeof(why));
    return absl::InvalidArgumentError(why);
  }
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

bool Pattern::Matches(const std::string& text) const {
  return !is_empty() &&
         ::regexec(&compiled_->expression, text.c_str(), 0, nullptr, 0) == 0;
}

bool Pattern::Matches(const NamedCall& call) const {
  return Matches(call.function) || Matches(call.place) || Matches(call.module);
}

bool FramePolicy::Selects(const std::vector<NamedCall>& calls) const {
  bool focused = focus.is_empty();
  for (const NamedCall& call : calls) {
    if (ignore.Matches(call)) return false;
    focused = focused || focus.Matches(call);
  }
  return focused;
}

}  // namespace hakmem::tools
