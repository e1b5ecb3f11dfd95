// Lines of failure traces for tests.
#ifndef HAKMEM_TOOLS_HAKMEM_TEST_RECORDS_H_
#define HAKMEM_TOOLS_HAKMEM_TEST_RECORDS_H_

#include <nlohmann/json.hpp>
#include <string>

namespace hakmem::tools {

using Json = nlohmann::ordered_json;

// A failure with every field but the optional ones of its call.
inline Json FailureJson() {
  return Json::parse(R"({
    "schema": "hakmem-failure", "version": 1, "event": "failure",
    "sequence": 1, "time": "2026-11-20T16:40:01.5Z", "monotonic_ns": 1500,
    "pid": 77, "tid": 78, "thread": "worker", "program": "server",
    "hakmem": "0.1.0", "variant": "release",
    "call": "malloc", "size": 1048576, "route": "span",
    "reason": "MapFail", "detail": "rlimit_as",
    "disposition": "returned_null", "attempts": 2,
    "refused": {"call": "mmap", "bytes": 2097152, "errno": 12,
                "error": "ENOMEM"},
    "limit": {"name": "RLIMIT_AS", "value": 1073741824, "use": 1072693248,
              "needed": 2097152, "source": "/proc/self/limits"},
    "limits": [{"name": "RLIMIT_AS", "value": 1073741824, "use": 1072693248,
                "source": "/proc/self/limits"},
               {"name": "vm.max_map_count", "value": 65530, "use": 120,
                "source": "/proc/sys/vm/max_map_count"}],
    "memory": {"granted": 900000000, "live": 800000000, "cached": 1000000, "mapped": 950000000,
               "peak_mapped": 960000000, "metadata": 4000000,
               "largest_free": 131072},
    "modules": [{"path": "/usr/bin/server", "build_id": "ab12"}],
    "stack": [{"module": 0, "offset": "0x12f0"}, {"address": "0x7fff1000"}]
  })");
}

// The same with other fields.
inline Json FailureJson(const Json& changes) {
  Json json = FailureJson();
  json.update(changes);
  return json;
}

inline Json StartJson() {
  return Json::parse(R"({
    "schema": "hakmem-failure", "version": 1, "event": "start",
    "time": "2026-11-20T16:40:00Z", "pid": 77, "program": "server",
    "hakmem": "0.1.0", "variant": "release",
    "options": {"HAKMEM_HEAP_LIMIT": "1G"}
  })");
}

inline Json MemoryJson(const std::string& time, std::uint64_t granted) {
  Json json = Json::parse(R"({
    "schema": "hakmem-failure", "version": 1, "event": "memory",
    "time": "", "monotonic_ns": 1, "pid": 77,
    "memory": {"granted": 0, "cached": 1048576, "mapped": 8388608}
  })");
  json["time"] = time;
  json["memory"]["granted"] = granted;
  return json;
}

inline Json EndJson(std::uint64_t failures, std::uint64_t dropped) {
  Json json = Json::parse(R"({
    "schema": "hakmem-failure", "version": 1, "event": "end",
    "time": "2026-11-20T16:50:00Z", "pid": 77,
    "memory": {"granted": 0, "cached": 0, "mapped": 0}
  })");
  json["failures"] = failures;
  json["dropped"] = dropped;
  return json;
}

inline std::string Line(const Json& json) { return json.dump() + "\n"; }

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TEST_RECORDS_H_
