#include "tools/hakmem/pprof_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/elf_file.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b";
// Field 1, a message: the type of a sample's first value.
constexpr char kFirstByte = 0x0a;
constexpr std::size_t kMostBytes = std::size_t{1} << 28;

// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // False: there are no more, or the rest is damaged.
  bool Next() {
    std::uint64_t key = 0;
    if (rest_.empty() || !Varint(key)) return false;
    field_ = key >> 3;
    bytes_ = {};
    number_ = 0;
    switch (key & 7) {
      case 0:
        return Varint(number_);
      case 1:
        return Take(8, bytes_);
      case 2:
        return Varint(number_) && Take(number_, bytes_);
      case 5:
        return Take(4, bytes_);
      default:
        damaged_ = true;
        return false;
    }
  }
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  bool damaged() const { return damaged_; }

  // Of a repeated number: packed, or this one.
  void AddNumbersTo(std::vector<std::uint64_t>& numbers) const {
    if (bytes_.empty()) {
      numbers.push_back(number_);
      return;
    }
    Fields packed(bytes_);
    std::uint64_t number = 0;
    while (!packed.rest_.empty() && packed.Varint(number)) {
      numbers.push_back(number);
    }
  }

 private:
  bool Varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    damaged_ = true;
    return false;
  }
  bool Take(std::uint64_t size, std::string_view& taken) {
    if (size > rest_.size()) {
      damaged_ = true;
      return false;
    }
    taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::uint64_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool damaged_ = false;
};

// Any message, by the numbers of its fields: the last of each.
struct Message {
  explicit Message(std::string_view bytes) {
    for (Fields fields(bytes); fields.Next();) {
      const std::uint64_t field = fields.field();
      if (field < kFields) numbers[field] = fields.number();
      if (field == 4 || field == 1 || field == 2) {
        parts.emplace_back(field, fields.bytes());
      }
    }
  }
  static constexpr std::size_t kFields = 8;
  std::uint64_t numbers[kFields] = {};
  std::vector<std::pair<std::uint64_t, std::string_view>> parts;
};

class Reader {
 public:
  explicit Reader(HeapModules& modules) : modules_(modules) {}

  absl::StatusOr<HeapProfiles> Read(std::string_view bytes) {
    Fields fields(bytes);
    while (fields.Next()) Collect(fields);
    if (fields.damaged()) {
      return absl::DataLossError("is a pprof profile that is cut off");
    }
    FindValues();
    if (live_.bytes < 0 && allocated_.bytes < 0) {
      return absl::InvalidArgumentError(
          "is a pprof profile without inuse_space, alloc_space or space: it is "
          "not of a heap");
    }
    for (const auto& [id, mapping] : mappings_) AddModule(id, mapping);
    for (const std::string_view sample : samples_) AddSample(sample);
    if (has_negatives_) {
      return absl::InvalidArgumentError(
          "is the difference of two profiles, with numbers below 0: go tool "
          "pprof shows it");
    }
    HeapProfiles profiles;
    for (auto& [pid, profile] : profiles_) {
      profile.KeepLiveBelowPeak();
      profiles.last.push_back(std::move(profile));
    }
    profiles.in_file = profiles.last.size();
    if (profiles.in_file == 0) {
      return absl::InvalidArgumentError("is a pprof profile without samples");
    }
    return profiles;
  }

 private:
  // Indexes of a kind's values; -1: it has none.
  struct Values {
    int blocks = -1;
    int bytes = -1;
  };

  void Collect(const Fields& fields) {
    const auto add = [&fields](std::map<std::uint64_t, Message>& to) {
      const Message message(fields.bytes());
      to.emplace(message.numbers[1], message);
    };
    switch (fields.field()) {
      case 1:
        return types_.push_back(Message(fields.bytes()).numbers[1]);
      case 2:
        return samples_.push_back(fields.bytes());
      case 3:
        return add(mappings_);
      case 4:
        return add(locations_);
      case 5:
        return add(functions_);
      case 6:
        return strings_.push_back(fields.bytes());
      case 9:
        time_ns_ = fields.number();
        return;
      case 12:
        mean_bytes_ = std::max<std::uint64_t>(fields.number(), 1);
        return;
      default:
        return;
    }
  }

  std::string String(std::uint64_t id) const {
    return id < strings_.size() ? std::string(strings_[id]) : "";
  }

  void FindValues() {
    for (std::size_t i = 0; i < types_.size(); ++i) {
      std::string type = String(types_[i]);
      if (type == "space" || type == "objects") type.insert(0, "inuse_");
      Values other;
      Values& values = absl::StartsWith(type, "inuse_")   ? live_
                       : absl::StartsWith(type, "peak_")  ? peak_
                       : absl::StartsWith(type, "alloc_") ? allocated_
                                                          : other;
      if (absl::EndsWith(type, "_space")) values.bytes = static_cast<int>(i);
      if (absl::EndsWith(type, "_objects")) values.blocks = static_cast<int>(i);
    }
  }

  void AddModule(std::uint64_t id, const Message& mapping) {
    HeapMapping& added = modules_of_[id];
    const std::string path = String(mapping.numbers[5]);
    const std::string build_id = String(mapping.numbers[6]);
    added.begin = mapping.numbers[2];
    added.end = mapping.numbers[3];
    added.offset = mapping.numbers[4];
    added.base = added.begin - added.offset;
    // The file says how its addresses differ from offsets.
    if (build_id.empty() || BuildIdOfFile(path) == build_id) {
      added.base -= AddressLessOffset(path, added.offset).value_or(0);
    }
    added.module =
        modules_.Add({.path = path, .build_id = build_id, .source = ""});
    if (program_.empty()) program_ = path.substr(path.rfind('/') + 1);
  }

  HeapProfile& ProfileOf(std::uint64_t pid) {
    HeapProfile& profile = profiles_[pid];
    if (profile.whole) return profile;
    profile.pid = pid;
    profile.program = program_;
    profile.mean_bytes = mean_bytes_;
    profile.time_ns = time_ns_;
    for (const auto& [id, mapping] : modules_of_) {
      profile.mappings.push_back(mapping);
    }
    profile.has_end = profile.whole = true;
    return profile;
  }

  void AddSample(std::string_view sample) {
    HeapSite site;
    std::vector<std::uint64_t> locations;
    std::vector<std::uint64_t> values;
    std::uint64_t pid = 0;
    for (Fields fields(sample); fields.Next();) {
      if (fields.field() == 1) fields.AddNumbersTo(locations);
      if (fields.field() == 2) fields.AddNumbersTo(values);
      if (fields.field() != 3) continue;
      const Message label(fields.bytes());
      if (String(label.numbers[1]) == "pid") pid = label.numbers[3];
    }
    has_negatives_ |= std::ranges::any_of(
        values, [](std::uint64_t value) { return value >> 63 != 0; });
    for (const std::uint64_t id : locations) AddFrame(id, site);
    site.figures = {.live = FiguresOf(values, live_),
                    .peak = FiguresOf(values, peak_),
                    .allocated = FiguresOf(values, allocated_)};
    if (allocated_.bytes < 0) site.figures.allocated = site.figures.live;
    HeapProfile& profile = ProfileOf(pid);
    profile.totals += site.figures;
    profile.sites.push_back(std::move(site));
  }

  HeapFigures FiguresOf(const std::vector<std::uint64_t>& values,
                        const Values& at) const {
    const auto value = [&values](int index) {
      const auto i = static_cast<std::size_t>(index);
      return index < 0 || i >= values.size() ? 0 : values[i];
    };
    HeapFigures figures = {.blocks = value(at.blocks),
                           .bytes = value(at.bytes)};
    if (figures.bytes == 0) return figures;
    const double blocks = std::max(1.0, static_cast<double>(figures.blocks));
    const double bytes = static_cast<double>(figures.bytes);
    const double missed =
        std::exp(-bytes / blocks / static_cast<double>(mean_bytes_));
    const double samples = std::max(1.0, std::round(blocks * (1 - missed)));
    figures.samples = static_cast<std::uint64_t>(samples);
    figures.variance = bytes * bytes * missed / samples;
    return figures;
  }

  void AddFrame(std::uint64_t id, HeapSite& site) {
    const auto location = locations_.find(id);
    if (location == locations_.end()) return;
    std::vector<SourceLine> lines;
    for (const auto& [field, bytes] : location->second.parts) {
      if (field == 4) lines.push_back(LineOf(Message(bytes)));
    }
    // It lies within the call.
    std::uint64_t address = location->second.numbers[3] + 1;
    Frame frame;
    const auto mapping = modules_of_.find(location->second.numbers[2]);
    if (address > 1 && mapping != modules_of_.end()) {
      frame = {.module = mapping->second.module,
               .offset = address - mapping->second.base};
    } else {
      // A name in the place of code.
      for (const SourceLine& line : lines) {
        address = address * 31 + std::hash<std::string>()(line.function);
      }
      frame.offset = address;
    }
    site.addresses.push_back(address);
    site.stack.push_back(frame);
    if (!lines.empty()) modules_.AddNames(frame, std::move(lines));
  }

  SourceLine LineOf(const Message& line) const {
    const auto function = functions_.find(line.numbers[1]);
    if (function == functions_.end()) return {};
    const std::string file = String(function->second.numbers[4]);
    return {.function = String(function->second.numbers[2]),
            .place = file.empty() || line.numbers[2] == 0
                         ? file
                         : absl::StrCat(file, ":", line.numbers[2])};
  }

  HeapModules& modules_;
  std::vector<std::uint64_t> types_;
  std::vector<std::string_view> samples_;
  std::vector<std::string_view> strings_;
  std::map<std::uint64_t, Message> mappings_;
  std::map<std::uint64_t, Message> locations_;
  std::map<std::uint64_t, Message> functions_;
  std::uint64_t time_ns_ = 0;
  std::uint64_t mean_bytes_ = 1;
  Values live_;
  Values peak_;
  Values allocated_;
  bool has_negatives_ = false;
  std::map<std::uint64_t, HeapMapping> modules_of_;
  std::map<std::uint64_t, HeapProfile> profiles_;  // by process
  std::string program_;
};

absl::StatusOr<std::string> Unzipped(std::string_view bytes) {
  // The largest window, with gzip's header.
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream = {};
  if (::inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return absl::ResourceExhaustedError("cannot be read: zlib has no memory");
  }
  std::string in(bytes);
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  int result = Z_OK;
  while (result == Z_OK && out.size() < kMostBytes) {
    char buffer[1 << 16];
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    result = ::inflate(&stream, Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (result != Z_STREAM_END) {
    return absl::DataLossError("is compressed, and cut off or damaged");
  }
  return out;
}

}  // namespace

bool IsPprof(std::string_view bytes) {
  return absl::StartsWith(bytes, kGzip) ||
         (bytes.size() > 2 && bytes[0] == kFirstByte && bytes[2] == 0x08);
}

absl::StatusOr<HeapProfiles> ReadPprof(std::string_view bytes,
                                       HeapModules& modules) {
  if (!absl::StartsWith(bytes, kGzip)) return Reader(modules).Read(bytes);
  const absl::StatusOr<std::string> unzipped = Unzipped(bytes);
  if (!unzipped.ok()) return unzipped.status();
  return Reader(modules).Read(*unzipped);
}

}  // namespace hakmem::tools
