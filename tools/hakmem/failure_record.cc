#include "tools/hakmem/failure_record.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::json;

// Reads the fields of one object; the first that is missing or of the wrong
// type is the error.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) Fail("is not an object", "a part");
  }

  std::string Text(const char* name) {
    const Json* field = Find(name, /*required=*/true);
    if (field == nullptr) return "";
    if (!field->is_string()) Fail("is not a text", name);
    return error_.empty() ? field->get<std::string>() : "";
  }

  std::string TextOrNone(const char* name) {
    return Find(name, /*required=*/false) == nullptr ? "" : Text(name);
  }

  std::uint64_t Number(const char* name) {
    const Json* field = Find(name, /*required=*/true);
    if (field == nullptr) return 0;
    if (!field->is_number_unsigned()) Fail("is not a whole number", name);
    return error_.empty() ? field->get<std::uint64_t>() : 0;
  }

  std::optional<std::uint64_t> NumberOrNone(const char* name) {
    if (Find(name, /*required=*/false) == nullptr) return std::nullopt;
    return Number(name);
  }

  // Calls read(fields of the member `name`) if there is one.
  template <typename Read>
  void Object(const char* name, Read read) {
    const Json* field = Find(name, /*required=*/false);
    if (field != nullptr) Part(*field, name, read);
  }

  // Calls read(fields) for each object of the member `name`, if there is one.
  template <typename Read>
  void Each(const char* name, Read read) {
    const Json* field = Find(name, /*required=*/false);
    if (field == nullptr) return;
    if (!field->is_array()) return Fail("is not a list", name);
    for (const Json& element : *field) Part(element, name, read);
  }

  void Fail(std::string_view what, std::string_view name) {
    if (error_.empty()) error_ = absl::StrCat(name, " ", what);
  }

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  const Json& object() const { return object_; }

 private:
  const Json* Find(const char* name, bool required) {
    if (!error_.empty()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    if (required) Fail("is missing", name);
    return nullptr;
  }

  template <typename Read>
  void Part(const Json& element, const char* name, Read read) {
    Fields fields(element);
    if (fields.ok()) read(fields);
    if (!fields.ok()) Fail(fields.error(), absl::StrCat(name, ":"));
  }

  const Json& object_;
  std::string error_;
};

Limit ReadLimit(Fields& fields) {
  Limit limit;
  limit.name = fields.Text("name");
  limit.source = fields.TextOrNone("source");
  limit.value = fields.NumberOrNone("value");
  limit.use = fields.NumberOrNone("use");
  limit.needed = fields.NumberOrNone("needed");
  return limit;
}

Frame ReadFrame(Fields& fields) {
  Frame frame;
  const std::optional<std::uint64_t> module = fields.NumberOrNone("module");
  if (module.has_value()) frame.module = *module;
  const std::string number = fields.Text(module ? "offset" : "address");
  if (!absl::StartsWith(number, "0x") ||
      !absl::SimpleHexAtoi(number, &frame.offset)) {
    fields.Fail("is no hexadecimal number", "a frame");
  }
  return frame;
}

void ReadMemory(Fields& fields, Record& record) {
  fields.Object("memory", [&record](Fields& memory) {
    Memory read;
    read.granted = memory.Number("granted");
    read.live = memory.NumberOrNone("live");
    read.cached = memory.Number("cached");
    read.mapped = memory.Number("mapped");
    read.peak_mapped = memory.NumberOrNone("peak_mapped");
    read.metadata = memory.NumberOrNone("metadata");
    read.largest_free = memory.NumberOrNone("largest_free");
    record.memory = read;
  });
}

void ReadTime(Fields& fields, Record& record) {
  record.time = fields.Text("time");
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, record.time, &time, &error) ||
      time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    fields.Fail("is no time", "time");
  } else {
    record.time_us = absl::ToUnixMicros(time);
  }
}

void ReadStack(Fields& fields, Record& record) {
  fields.Each("modules", [&record](Fields& module) {
    record.modules.push_back(
        {module.Text("path"), module.TextOrNone("build_id")});
  });
  fields.Each("stack", [&record](Fields& entry) {
    const Frame frame = ReadFrame(entry);
    if (frame.module != Frame::kNoModule &&
        frame.module >= record.modules.size()) {
      entry.Fail("names a module that is not in the list", "a frame");
    }
    record.stack.push_back(frame);
  });
}

void ReadFailure(Fields& fields, Record& record) {
  record.sequence = fields.Number("sequence");
  record.tid = fields.Number("tid");
  record.thread = fields.TextOrNone("thread");
  record.program = fields.Text("program");
  record.version = fields.TextOrNone("hakmem");
  record.variant = fields.TextOrNone("variant");
  record.call = fields.Text("call");
  record.size = fields.Number("size");
  record.alignment = fields.NumberOrNone("alignment");
  record.count = fields.NumberOrNone("count");
  record.route = fields.TextOrNone("route");
  record.class_bytes = fields.NumberOrNone("class");
  record.reason = fields.Text("reason");
  record.detail = fields.Text("detail");
  record.disposition = fields.Text("disposition");
  record.attempts = fields.NumberOrNone("attempts").value_or(1);
  fields.Object("refused", [&record](Fields& refused) {
    Refused read;
    read.call = refused.Text("call");
    read.bytes = refused.NumberOrNone("bytes").value_or(0);
    read.error = refused.TextOrNone("error");
    if (read.error.empty()) {
      read.error = absl::StrCat("errno ", refused.Number("errno"));
    }
    record.refused = std::move(read);
  });
  fields.Object("limit",
                [&record](Fields& limit) { record.limit = ReadLimit(limit); });
  fields.Each("limits", [&record](Fields& limit) {
    record.limits.push_back(ReadLimit(limit));
  });
  ReadStack(fields, record);
}

void ReadStart(Fields& fields, Record& record) {
  record.program = fields.Text("program");
  record.version = fields.TextOrNone("hakmem");
  record.variant = fields.TextOrNone("variant");
  fields.Object("options", [&record](Fields& options) {
    for (const auto& [name, value] : options.object().items()) {
      // Who wrote a trace may nest what is printed deeper than a stack goes.
      if (value.is_structured()) options.Fail("is no text", name);
      if (!options.ok()) return;
      record.options.emplace_back(
          name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  });
}

// Told like a failure, with a reason of its own.
void ReadKilled(Fields& fields, Record& record) {
  record.program = fields.Text("program");
  record.signal = fields.Number("signal");
  record.reason = "Killed";
  record.detail = "cgroup";
  record.disposition = "killed";
  fields.Object("limit",
                [&record](Fields& limit) { record.limit = ReadLimit(limit); });
}

bool ReadKind(Fields& fields, Record& record) {
  // In the order of RecordKind.
  constexpr std::string_view kKinds[] = {"start", "failure", "memory", "end",
                                         "killed"};
  const auto* const at = std::ranges::find(kKinds, fields.Text("event"));
  if (at == std::end(kKinds)) {
    fields.Fail("is one that this version does not know", "event");
  }
  record.kind = static_cast<RecordKind>(at - std::begin(kKinds));
  return fields.ok();
}

void CheckSchema(Fields& fields) {
  if (fields.Text("schema") != kFailureSchema) {
    return fields.Fail("is another", "schema");
  }
  const std::uint64_t version = fields.Number("version");
  if (fields.ok() && version != kFailureSchemaVersion) {
    fields.Fail(absl::StrCat("is ", version, ", and this program knows ",
                             kFailureSchemaVersion),
                "the schema's version");
  }
}

}  // namespace

bool CallFailed(const Record& record) {
  // pending: a handler has ended the process before the call could return.
  return record.disposition == "returned_null" ||
         record.disposition == "threw" || record.disposition == "pending";
}

absl::StatusOr<Record> ParseRecord(std::string_view json) {
  const Json object = Json::parse(json.begin(), json.end(), nullptr,
                                  /*allow_exceptions=*/false);
  if (object.is_discarded()) return absl::InvalidArgumentError("is no JSON");
  Fields fields(object);
  Record record;
  CheckSchema(fields);
  if (fields.ok() && ReadKind(fields, record)) {
    record.pid = fields.Number("pid");
    record.dropped = fields.NumberOrNone("dropped").value_or(0);
    ReadTime(fields, record);
    ReadMemory(fields, record);
    if (record.kind == RecordKind::kFailure) ReadFailure(fields, record);
    if (record.kind == RecordKind::kStart) ReadStart(fields, record);
    if (record.kind == RecordKind::kKilled) ReadKilled(fields, record);
    if (record.kind == RecordKind::kEnd) {
      record.failures = fields.Number("failures");
    }
  }
  if (!fields.ok()) return absl::InvalidArgumentError(fields.error());
  return record;
}

}  // namespace hakmem::tools
