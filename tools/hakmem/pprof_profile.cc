#include "tools/hakmem/pprof_profile.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

namespace hakmem::tools {
namespace {

// The fields of profile.proto's messages.
namespace profile {
constexpr std::uint32_t kSampleType = 1;
constexpr std::uint32_t kSample = 2;
constexpr std::uint32_t kMapping = 3;
constexpr std::uint32_t kLocation = 4;
constexpr std::uint32_t kFunction = 5;
constexpr std::uint32_t kStringTable = 6;
constexpr std::uint32_t kTimeNanos = 9;
constexpr std::uint32_t kDurationNanos = 10;
constexpr std::uint32_t kPeriodType = 11;
constexpr std::uint32_t kPeriod = 12;
constexpr std::uint32_t kComment = 13;
constexpr std::uint32_t kDefaultSampleType = 14;
}  // namespace profile

}  // namespace

PprofProfile::PprofProfile() { StringId(""); }

std::uint64_t PprofProfile::StringId(const std::string& string) {
  const auto [found, is_new] = string_ids_.try_emplace(string, strings_.size());
  if (is_new) strings_.push_back(string);
  return found->second;
}

ProtobufWriter PprofProfile::ValueType(const std::string& type,
                                       const std::string& unit) {
  ProtobufWriter message;
  message.Number(1, StringId(type));
  message.Number(2, StringId(unit));
  return message;
}

void PprofProfile::AddSampleType(const std::string& type,
                                 const std::string& unit) {
  profile_.Message(profile::kSampleType, ValueType(type, unit));
}

void PprofProfile::SetDefaultSampleType(const std::string& type) {
  profile_.Number(profile::kDefaultSampleType, StringId(type));
}

void PprofProfile::SetPeriod(const std::string& type, const std::string& unit,
                             std::uint64_t period) {
  profile_.Message(profile::kPeriodType, ValueType(type, unit));
  profile_.Number(profile::kPeriod, period);
}

void PprofProfile::SetTime(std::uint64_t unix_ns, std::uint64_t duration_ns) {
  profile_.Number(profile::kTimeNanos, unix_ns);
  profile_.Number(profile::kDurationNanos, duration_ns);
}

void PprofProfile::AddComment(const std::string& comment) {
  profile_.Number(profile::kComment, StringId(comment));
}

std::uint64_t PprofProfile::AddMapping(PprofMapping mapping) {
  mappings_.push_back({.facts = std::move(mapping)});
  return mappings_.size();
}

void PprofProfile::WriteMapping(std::uint64_t id, const Mapping& mapping) {
  ProtobufWriter message;
  message.Number(1, id);
  message.Number(2, mapping.facts.begin);
  message.Number(3, mapping.facts.end);
  message.Number(4, mapping.facts.file_offset);
  message.Number(5, StringId(mapping.facts.path));
  message.Number(6, StringId(mapping.facts.build_id));
  // Functions, files, lines: pprof need not look for them.
  for (std::uint32_t field = 7; mapping.has_names && field <= 9; ++field) {
    message.Number(field, 1);
  }
  profile_.Message(profile::kMapping, message);
}

std::uint64_t PprofProfile::FunctionId(const std::string& name,
                                       const std::string& file) {
  const auto [found, is_new] =
      function_ids_.try_emplace({name, file}, function_ids_.size() + 1);
  if (is_new) {
    ProtobufWriter message;
    message.Number(1, found->second);
    message.Number(2, StringId(name));
    // No name of the linker's beside it: pprof takes one that is the same for
    // mangled, and shortens what it finds in brackets.
    message.Number(4, StringId(file));
    profile_.Message(profile::kFunction, message);
  }
  return found->second;
}

ProtobufWriter PprofProfile::Line(const SourceLine& line) {
  // "file.c:12"
  std::string file = line.place;
  std::uint64_t number = 0;
  const std::size_t colon = file.rfind(':');
  if (colon != std::string::npos &&
      absl::SimpleAtoi(file.substr(colon + 1), &number)) {
    file.resize(colon);
  }
  ProtobufWriter message;
  message.Number(1, FunctionId(line.function, file));
  message.Number(2, number);
  return message;
}

std::uint64_t PprofProfile::NewLocation(ProtobufWriter& message) {
  profile_.Message(profile::kLocation, message);
  return ++locations_;
}

std::uint64_t PprofProfile::Location(std::uint64_t mapping,
                                     std::uint64_t address,
                                     const std::vector<SourceLine>& lines) {
  const auto [found, is_new] = location_ids_.try_emplace(
      {mapping, address, lines.size()}, locations_ + 1);
  if (!is_new) return found->second;
  ProtobufWriter message;
  message.Number(1, locations_ + 1);
  message.Number(2, mapping);
  // Within the call: a return address may be the next function's.
  message.Number(3, address - 1);
  for (const SourceLine& line : lines) {
    if (line.function.empty()) continue;
    message.Message(4, Line(line));
    if (mapping != kNoMapping) mappings_[mapping - 1].has_names = true;
  }
  return NewLocation(message);
}

std::uint64_t PprofProfile::LocationNamed(const std::string& name) {
  const auto [found, is_new] = named_ids_.try_emplace(name, locations_ + 1);
  if (!is_new) return found->second;
  ProtobufWriter message;
  message.Number(1, locations_ + 1);
  message.Message(4, Line({.function = name, .place = ""}));
  return NewLocation(message);
}

void PprofProfile::AddSample(const std::vector<std::uint64_t>& locations,
                             const std::vector<std::uint64_t>& values,
                             const std::string& label, std::uint64_t number) {
  ProtobufWriter message;
  message.Numbers(1, locations);
  message.Numbers(2, values);
  if (!label.empty()) {
    ProtobufWriter label_message;
    label_message.Number(1, StringId(label));
    label_message.Number(3, number);
    message.Message(3, label_message);
  }
  profile_.Message(profile::kSample, message);
}

std::string PprofProfile::Finish() {
  for (std::size_t i = 0; i < mappings_.size(); ++i) {
    WriteMapping(i + 1, mappings_[i]);
  }
  for (const std::string& string : strings_) {
    profile_.Bytes(profile::kStringTable, string);
  }
  return profile_.bytes();
}

std::string Gzipped(const std::string& bytes) {
  // The largest window, with gzip's header.
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow,
                   kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace hakmem::tools
