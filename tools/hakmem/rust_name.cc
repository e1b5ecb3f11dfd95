#include "tools/hakmem/rust_name.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kHashBegins = "::h";
constexpr std::size_t kHashDigits = 16;

bool EndsWithHash(std::string_view name) {
  if (name.size() <= kHashBegins.size() + kHashDigits) return false;
  const std::string_view digits = name.substr(name.size() - kHashDigits);
  name.remove_suffix(kHashDigits);
  return absl::EndsWith(name, kHashBegins) &&
         std::ranges::all_of(digits, [](unsigned char digit) {
           return absl::ascii_isxdigit(digit) && !absl::ascii_isupper(digit);
         });
}

}  // namespace

std::string ReadableName(std::string_view demangled) {
  if (!EndsWithHash(demangled)) return std::string(demangled);
  demangled.remove_suffix(kHashBegins.size() + kHashDigits);
  // A part of a path that begins with an escape has an underscore before it.
  if (absl::StartsWith(demangled, "_$")) demangled.remove_prefix(1);
  return absl::StrReplaceAll(
      demangled,
      {{"::_$LT$", "::<"}, {"$LT$", "<"},  {"$GT$", ">"},   {"$RF$", "&"},
       {"$BP$", "*"},      {"$C$", ","},   {"$SP$", "@"},   {"$LP$", "("},
       {"$RP$", ")"},      {"$u20$", " "}, {"$u22$", "\""}, {"$u27$", "'"},
       {"$u2b$", "+"},     {"$u3b$", ";"}, {"$u5b$", "["},  {"$u5d$", "]"},
       {"$u7b$", "{"},     {"$u7d$", "}"}, {"$u7e$", "~"},  {"..", "::"}});
}

}  // namespace hakmem::tools
