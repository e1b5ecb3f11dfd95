#include "tools/hakmem/analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/failure_record.h"

namespace hakmem::tools {
namespace {

// Leaves every second element out when there are too many.
template <typename T>
void ThinOut(std::vector<T>& elements) {
  if (elements.size() <= Analysis::kMaxPoints) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < elements.size(); i += 2) {
    elements[kept++] = elements[i];
  }
  elements.resize(kept);
}

// How much a record can say of its cause.
std::size_t Evidence(const Record& record) {
  return record.limits.size() + (record.limit.has_value() ? 1 : 0) +
         (record.refused.has_value() ? 1 : 0) +
         (record.memory.has_value() ? 1 : 0) +
         (record.memory.has_value() && record.memory->live ? 1 : 0);
}

void AddMemory(const Record& record, Process& process) {
  if (!record.memory.has_value()) return;
  const Memory& memory = *record.memory;
  process.memory.push_back(
      {record.time_us, memory.granted, memory.cached, memory.mapped});
  ThinOut(process.memory);
  process.peak_granted = std::max(process.peak_granted, memory.granted);
  process.peak_mapped = std::max({process.peak_mapped, memory.mapped,
                                  memory.peak_mapped.value_or(memory.mapped)});
}

void Describe(const Record& record, Process& process) {
  if (!record.program.empty()) process.program = record.program;
  if (!record.variant.empty()) process.variant = record.variant;
  if (!record.version.empty()) process.version = record.version;
  if (process.first_time.empty()) process.first_time = record.time;
  process.last_time = record.time;
}

}  // namespace

std::size_t Analysis::Add(std::size_t source, const Record& record) {
  const std::size_t index = ProcessOf(source, record);
  Process& process = processes_[index];
  Describe(record, process);
  AddMemory(record, process);
  switch (record.kind) {
    case RecordKind::kStart:
      process.options = record.options;
      return kNone;
    case RecordKind::kMemory:
      return kNone;
    case RecordKind::kEnd:
      process.ended = true;
      // The total, and the only sum that no lost line can falsify.
      process.dropped = std::max(process.dropped, record.dropped);
      return kNone;
    case RecordKind::kFailure:
    case RecordKind::kKilled:
      break;
  }
  const std::size_t cause = CauseOf(record);
  if (record.kind == RecordKind::kKilled) {
    ++killed_;
    ++causes_[cause].killed;
    causes_[cause].last_time = record.time;
    causes_[cause].processes.insert(index);
    return cause;
  }
  AddFailure(index, cause, record);
  AddSite(cause, record);
  return cause;
}

std::size_t Analysis::ProcessOf(std::size_t source, const Record& record) {
  const auto [at, is_new] =
      process_index_.try_emplace({source, record.pid}, processes_.size());
  // An exec, or a later process with the same number.
  const bool again = !is_new && record.kind == RecordKind::kStart;
  if (again) at->second = processes_.size();
  if (is_new || again) {
    Process process;
    process.source = source;
    process.pid = record.pid;
    processes_.push_back(std::move(process));
  }
  return at->second;
}

std::size_t Analysis::CauseOf(const Record& record) {
  const bool has_limit = record.limit.has_value();
  const std::string name = has_limit ? record.limit->name : "";
  const std::string source = has_limit ? record.limit->source : "";
  const auto [at, is_new] = cause_index_.try_emplace(
      CauseKey(record.reason, record.detail, name, source), causes_.size());
  if (is_new) {
    Cause cause;
    cause.reason = record.reason;
    cause.detail = record.detail;
    cause.limit_name = name;
    cause.limit_source = source;
    cause.smallest = cause.largest = record.size;
    cause.first_us = cause.last_us = record.time_us;
    cause.first_time = cause.last_time = record.time;
    cause.example = record;
    causes_.push_back(std::move(cause));
  }
  return at->second;
}

void Analysis::AddFailure(std::size_t index, std::size_t cause_index,
                          const Record& record) {
  Process& process = processes_[index];
  Cause& cause = causes_[cause_index];
  const bool failed = CallFailed(record);
  (failed ? failed_ : rescued_) += 1;
  (failed ? process.failed : process.rescued) += 1;
  (failed ? cause.failed : cause.rescued) += 1;
  process.dropped += record.dropped;
  ++cause.dispositions[record.disposition];
  cause.smallest = std::min(cause.smallest, record.size);
  cause.largest = std::max(cause.largest, record.size);
  if (record.time_us < cause.first_us) {
    cause.first_us = record.time_us;
    cause.first_time = record.time;
  }
  if (record.time_us >= cause.last_us) {
    cause.last_us = record.time_us;
    cause.last_time = record.time;
  }
  cause.processes.insert(index);
  const bool better = failed != CallFailed(cause.example)
                          ? failed
                          : Evidence(record) > Evidence(cause.example);
  if (better) cause.example = record;
  process.marks.push_back({record.time_us, cause_index, failed});
  ThinOut(process.marks);
}

void Analysis::AddSite(std::size_t cause_index, const Record& record) {
  std::vector<Frame> stack = record.stack;
  std::string key = record.call;
  for (Frame& frame : stack) {
    if (frame.module != Frame::kNoModule) {
      frame.module = ModuleOf(record.modules[frame.module]);
    }
    absl::StrAppend(&key, " ", frame.module, "+", frame.offset);
  }
  Cause& cause = causes_[cause_index];
  if (cause.sites.size() >= kMaxSites &&
      !site_index_.contains({cause_index, key})) {
    ++cause.sites_not_kept;
    return;
  }
  const auto [at, is_new] = site_index_.try_emplace(
      {cause_index, std::move(key)}, cause.sites.size());
  if (is_new) {
    cause.sites.push_back(
        {record.call, std::move(stack), 0, record.size, record.size});
  }
  CallSite& site = cause.sites[at->second];
  ++site.events;
  site.smallest = std::min(site.smallest, record.size);
  site.largest = std::max(site.largest, record.size);
}

std::size_t Analysis::ModuleOf(const Module& module) {
  const auto [at, is_new] = module_index_.try_emplace(
      {module.path, module.build_id}, modules_.size());
  if (is_new) modules_.push_back(module);
  return at->second;
}

std::vector<std::size_t> Analysis::Ranked() const {
  std::vector<std::size_t> order(causes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    const Cause& of_a = causes_[a];
    const Cause& of_b = causes_[b];
    return std::tuple(of_b.killed, of_b.failed, of_b.rescued, a) <
           std::tuple(of_a.killed, of_a.failed, of_a.rescued, b);
  });
  return order;
}

std::uint64_t Analysis::dropped() const {
  std::uint64_t sum = 0;
  for (const Process& process : processes_) sum += process.dropped;
  return sum;
}

std::vector<const CallSite*> Analysis::RankedSites(const Cause& cause) {
  std::vector<const CallSite*> sites;
  for (const CallSite& site : cause.sites) sites.push_back(&site);
  // They lie in the order in which they were met, which decides ties.
  std::sort(sites.begin(), sites.end(),
            [](const CallSite* a, const CallSite* b) {
              return a->events != b->events ? a->events > b->events
                                            : std::less<>()(a, b);
            });
  return sites;
}

}  // namespace hakmem::tools
