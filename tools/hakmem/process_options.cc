#include "tools/hakmem/process_options.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/raw_print.h"
#include "allocator/options/option_parser.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kOrigins[] = {"default", "environment", "program"};

// What a damaged process may have in place of the words of a choice, or of a
// path's end, is no such thing.
bool IsSound(const OptionSpec& spec, const ParsedOptions& parsed,
             OptionOrigin origin) {
  if (static_cast<std::size_t>(origin) >= std::size(kOrigins)) return false;
  if (spec.path == nullptr) {
    return spec.type != OptionType::kChoice ||
           parsed.values.*spec.number <= spec.maximum;
  }
  return std::memchr(parsed.values.*spec.path, '\0', kMaxOptionPathBytes) !=
         nullptr;
}

}  // namespace

std::vector<ProcessOption> ReadOptionsOf(const ProcessImage& image,
                                         std::string_view variant) {
  std::vector<ProcessOption> options;
  const absl::StatusOr<std::uint64_t> address =
      image.FindTables("hakmem_options", "it does not tell its options");
  if (!address.ok()) return options;
  const OptionTables own;
  const auto tables = std::make_unique<OptionTables>();
  if (!image.Read(*address, tables.get(), sizeof(*tables)).ok() ||
      std::memcmp(tables->magic, own.magic, sizeof(own.magic)) != 0 ||
      tables->table_bytes != own.table_bytes) {
    return options;
  }
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    const OptionSpec& spec = kOptionTable[i];
    const OptionOrigin origin = tables->parsed.origins[i];
    if (!HasOption(spec, variant) || !IsSound(spec, tables->parsed, origin)) {
      continue;
    }
    RawPrinter value;
    PrintOptionWithUnit(spec, tables->parsed.values, value);
    options.push_back(
        {.name = spec.name,
         .value = std::string(value.text()),
         .origin = std::string(kOrigins[static_cast<std::size_t>(origin)])});
  }
  return options;
}

}  // namespace hakmem::tools
