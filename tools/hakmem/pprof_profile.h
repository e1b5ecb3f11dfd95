// A profile of pprof's (profile.proto), built part by part.
#ifndef HAKMEM_TOOLS_HAKMEM_PPROF_PROFILE_H_
#define HAKMEM_TOOLS_HAKMEM_PPROF_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {

class ProtobufWriter {
 public:
  // uint64, int64 (as two's complement), bool. Fields that are zero are left
  // out, as proto3 has it.
  void Number(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    Varint(std::uint64_t{field} << 3);
    Varint(value);
  }

  // string, bytes, a message; written even when empty, because a repeated
  // field's empty element counts.
  void Bytes(std::uint32_t field, std::string_view bytes) {
    Varint(std::uint64_t{field} << 3 | 2);
    Varint(bytes.size());
    bytes_ += bytes;
  }
  void Message(std::uint32_t field, const ProtobufWriter& message) {
    Bytes(field, message.bytes_);
  }

  // repeated uint64 or int64, packed.
  void Numbers(std::uint32_t field, const std::vector<std::uint64_t>& values) {
    ProtobufWriter packed;
    for (const std::uint64_t value : values) packed.Varint(value);
    Bytes(field, packed.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

struct PprofMapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  std::string path;
  std::string build_id;
};

class PprofProfile {
 public:
  static constexpr std::uint64_t kNoMapping = 0;

  PprofProfile();

  // In the order of a sample's values.
  void AddSampleType(const std::string& type, const std::string& unit);
  void SetDefaultSampleType(const std::string& type);
  // What one sample stands for.
  void SetPeriod(const std::string& type, const std::string& unit,
                 std::uint64_t period);
  void SetTime(std::uint64_t unix_ns, std::uint64_t duration_ns);
  void AddComment(const std::string& comment);

  // Returns its number. pprof takes the first for the program.
  std::uint64_t AddMapping(PprofMapping mapping);

  // A return address in a mapping, with its functions, those that were inlined
  // first. Returns the location's number.
  std::uint64_t Location(std::uint64_t mapping, std::uint64_t address,
                         const std::vector<SourceLine>& lines);
  // A name in the place of code.
  std::uint64_t LocationNamed(const std::string& name);

  // With a label, a number; "": there is none.
  void AddSample(const std::vector<std::uint64_t>& locations,
                 const std::vector<std::uint64_t>& values,
                 const std::string& label = "", std::uint64_t number = 0);

  // Its bytes; nothing may be added later.
  std::string Finish();

 private:
  struct Mapping {
    PprofMapping facts;
    bool has_names = false;
  };

  std::uint64_t StringId(const std::string& string);
  std::uint64_t FunctionId(const std::string& name, const std::string& file);
  ProtobufWriter ValueType(const std::string& type, const std::string& unit);
  ProtobufWriter Line(const SourceLine& line);
  std::uint64_t NewLocation(ProtobufWriter& message);
  void WriteMapping(std::uint64_t id, const Mapping& mapping);

  ProtobufWriter profile_;
  std::map<std::string, std::uint64_t> string_ids_;
  std::vector<std::string> strings_;
  std::vector<Mapping> mappings_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> function_ids_;
  std::uint64_t locations_ = 0;
  // By mapping, address, and how many functions are shown.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::size_t>, std::uint64_t>
      location_ids_;
  std::map<std::string, std::uint64_t> named_ids_;
};

// As gzip writes it, and pprof's readers want it. Empty: zlib has no memory.
std::string Gzipped(const std::string& bytes);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PPROF_PROFILE_H_
