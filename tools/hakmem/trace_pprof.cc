// A call trace as a profile of pprof's: profile.proto, compressed by gzip.

#include <zlib.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/protobuf_writer.h"
#include "tools/hakmem/trace_report.h"

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

class PprofProfile {
 public:
  explicit PprofProfile(const TraceReport& report)
      : report_(report), facts_(report.blocks.facts()) {
    StringId("");
  }

  std::string Make() {
    for (const auto& [type, unit] : {std::pair("alloc_objects", "count"),
                                     std::pair("alloc_space", "bytes"),
                                     std::pair("inuse_objects", "count"),
                                     std::pair("inuse_space", "bytes")}) {
      profile_.Message(profile::kSampleType, ValueType(type, unit));
    }
    Mappings();
    if (facts_.has_stacks) {
      SitesAsSamples();
    } else {
      ClassesAsSamples();
    }
    profile_.Number(profile::kTimeNanos, facts_.wall_clock_ns);
    profile_.Number(profile::kDurationNanos, report_.analysis.duration_ns());
    profile_.Message(profile::kPeriodType, ValueType("objects", "count"));
    profile_.Number(profile::kPeriod, facts_.sample);
    for (const std::string& remark : TraceRemarks(report_)) {
      profile_.Number(profile::kComment, StringId(remark));
    }
    profile_.Number(profile::kDefaultSampleType, StringId("alloc_space"));
    for (const std::string& string : strings_) {
      profile_.Bytes(profile::kStringTable, string);
    }
    return profile_.bytes();
  }

 private:
  std::uint64_t StringId(const std::string& string) {
    const auto [found, is_new] =
        string_ids_.try_emplace(string, strings_.size());
    if (is_new) strings_.push_back(string);
    return found->second;
  }

  ProtobufWriter ValueType(const std::string& type, const std::string& unit) {
    ProtobufWriter message;
    message.Number(1, StringId(type));
    message.Number(2, StringId(unit));
    return message;
  }

  // The program's own comes first: pprof takes that for the profile's name.
  void Mappings() {
    const std::string ending = absl::StrCat("/", facts_.program);
    for (const bool own : {true, false}) {
      for (const auto& [begin, module] : report_.blocks.modules) {
        if (module.path.ends_with(ending) == own) Mapping(module);
      }
    }
  }

  void Mapping(const TraceModule& module) {
    const std::uint64_t id = mapping_ids_.size() + 1;
    mapping_ids_[module.begin] = id;
    ProtobufWriter message;
    message.Number(1, id);
    message.Number(2, module.begin);
    message.Number(3, module.begin + module.bytes);
    message.Number(4, module.file_offset);
    message.Number(5, StringId(module.path));
    message.Number(6, StringId(module.build_id));
    profile_.Message(profile::kMapping, message);
  }

  std::uint64_t FunctionId(const std::string& name, const std::string& file) {
    const auto [found, is_new] =
        function_ids_.try_emplace({name, file}, function_ids_.size() + 1);
    if (is_new) {
      ProtobufWriter message;
      message.Number(1, found->second);
      message.Number(2, StringId(name));
      message.Number(3, StringId(name));
      message.Number(4, StringId(file));
      profile_.Message(profile::kFunction, message);
    }
    return found->second;
  }

  ProtobufWriter Line(const SourceLine& line) {
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

  std::uint64_t NewLocation(ProtobufWriter& message) {
    profile_.Message(profile::kLocation, message);
    return ++locations_;
  }

  std::uint64_t LocationAt(std::uint64_t address) {
    const auto known = location_ids_.find(address);
    if (known != location_ids_.end()) return known->second;
    ProtobufWriter message;
    message.Number(1, locations_ + 1);
    const TraceModule* const module = report_.symbols.ModuleAt(address);
    if (module != nullptr) message.Number(2, mapping_ids_[module->begin]);
    // Within the call: a return address may be the next function's.
    message.Number(3, address - 1);
    for (const SourceLine& line : report_.symbols.Lines(address)) {
      if (!line.function.empty()) message.Message(4, Line(line));
    }
    return location_ids_[address] = NewLocation(message);
  }

  // A name in the place of code.
  std::uint64_t LocationNamed(const std::string& name) {
    const auto known = named_ids_.find(name);
    if (known != named_ids_.end()) return known->second;
    ProtobufWriter message;
    message.Number(1, locations_ + 1);
    message.Message(4, Line({.function = name, .place = ""}));
    return named_ids_[name] = NewLocation(message);
  }

  void Sample(const std::vector<std::uint64_t>& locations,
              const BlockTally& tally) {
    ProtobufWriter message;
    message.Numbers(1, locations);
    message.Numbers(2, {report_.Scaled(tally.allocations),
                        report_.Scaled(tally.allocated_bytes),
                        report_.Scaled(tally.live_blocks),
                        report_.Scaled(tally.live_bytes)});
    profile_.Message(profile::kSample, message);
  }

  void SitesAsSamples() {
    for (const TraceSite& site : SitesByBytes(report_.analysis)) {
      std::vector<std::uint64_t> locations = {
          LocationNamed(NameOf(facts_.calls, site.call))};
      for (const std::uint64_t address : report_.stacks.At(site.stack)) {
        locations.push_back(LocationAt(address));
      }
      Sample(locations, site.blocks);
    }
  }

  void ClassesAsSamples() {
    for (const auto& [key, tally] : report_.analysis.classes()) {
      const std::string route = TraceRouteName(key.first);
      std::vector<std::uint64_t> locations = {LocationNamed(route)};
      if (key.second != 0) {
        locations.insert(
            locations.begin(),
            LocationNamed(absl::StrCat("class ", key.second, " bytes")));
      }
      Sample(locations, tally);
    }
  }

  const TraceReport& report_;
  const TraceFacts& facts_;
  ProtobufWriter profile_;
  std::map<std::string, std::uint64_t> string_ids_;
  std::vector<std::string> strings_;
  std::map<std::uint64_t, std::uint64_t> mapping_ids_;  // by beginning
  std::map<std::pair<std::string, std::string>, std::uint64_t> function_ids_;
  std::uint64_t locations_ = 0;
  std::map<std::uint64_t, std::uint64_t> location_ids_;  // by address
  std::map<std::string, std::uint64_t> named_ids_;
};

// Empty: zlib has no memory.
std::string Gzip(const std::string& bytes) {
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

}  // namespace

std::string TraceAsPprof(const TraceReport& report) {
  return Gzip(PprofProfile(report).Make());
}

}  // namespace hakmem::tools
