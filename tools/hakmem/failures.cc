#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "allocator/base/route.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_ring.h"
#include "tools/hakmem/analysis.h"
#include "tools/hakmem/commands.h"
#include "tools/hakmem/output.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_names.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/symbolizer.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr const char* kFlags[] = {"json", "sites", "symbolizer", "symbols"};
constexpr char kMagic[8] = "hakfail";
constexpr std::uint32_t kMaxSlots = 1 << 20;
constexpr std::uint32_t kMaxSlotBytes = 1 << 16;
constexpr std::uint64_t kMaxRingBytes = 1 << 26;
// While all events change during a look, another one is taken.
constexpr int kTries = 20;

template <std::size_t kBytes>
std::string Text(const char (&text)[kBytes]) {
  return {text, ::strnlen(text, kBytes)};
}

// What a process keeps.
struct Ring {
  std::string version;
  std::string variant;
  std::uint64_t recorded = 0;
  std::vector<FailureEvent> events;  // oldest first
};

// Those that are whole, oldest first. The process goes on writing, perhaps a
// ring's events while one is read: so all slots are read at once, and again.
absl::Status ReadEvents(const ProcessImage& image,
                        const FailureRingDescriptor& ring,
                        std::vector<FailureEvent>& events) {
  std::vector<char> slots(std::size_t{ring.capacity} * ring.slot_bytes);
  std::vector<char> later(slots.size());
  absl::Status status =
      image.Read(AddressOf(ring.slots), slots.data(), slots.size());
  if (status.ok())
    status = image.Read(AddressOf(ring.slots), later.data(), later.size());
  if (!status.ok()) return status;
  for (std::uint64_t i = 0; i < ring.capacity; ++i) {
    const char* const slot = slots.data() + i * ring.slot_bytes;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    std::memcpy(&before, slot, sizeof(before));
    std::memcpy(&after, later.data() + i * ring.slot_bytes, sizeof(after));
    // Odd: it is being written. 0: it never was.
    if (before != after || before % 2 != 0 || before == 0 ||
        (before - 1) / 4 % ring.capacity != i) {
      continue;
    }
    FailureEvent event;
    std::memcpy(&event, slot + ring.event_offset, sizeof(event));
    events.push_back(event);
  }
  std::ranges::sort(events, {}, &FailureEvent::sequence);
  return status;
}

absl::StatusOr<Ring> ReadRing(const ProcessImage& image) {
  FailureRingDescriptor ring = {};
  absl::Status status =
      image.ReadTables("hakmem_failure_ring", "it keeps no failures", ring);
  if (!status.ok()) return status;
  if (std::memcmp(ring.magic, kMagic, sizeof(kMagic)) != 0 ||
      ring.version != 1 || ring.event_bytes < sizeof(FailureEvent) ||
      ring.capacity == 0 || ring.capacity > kMaxSlots ||
      ring.slot_bytes > kMaxSlotBytes ||
      std::uint64_t{ring.capacity} * ring.slot_bytes > kMaxRingBytes ||
      std::uint64_t{ring.event_offset} + ring.event_bytes > ring.slot_bytes) {
    return image.UnknownForm("keeps failures");
  }
  Ring read;
  read.version = image.ReadText(AddressOf(ring.hakmem_version));
  read.variant = image.ReadText(AddressOf(ring.variant));
  for (int tries = 0; tries < kTries && read.events.empty(); ++tries) {
    status = ReadEvents(image, ring, read.events);
    // After the events, so that it counts all of them.
    if (status.ok()) {
      status = TableReads(image).At(ring.recorded, read.recorded).status();
    }
    if (!status.ok()) return status;
    if (read.recorded == 0) break;
  }
  return read;
}

void AddStack(const ProcessImage& image, const FailureEvent& event,
              Record& record) {
  const std::size_t count =
      std::min<std::size_t>(event.frame_count, kMaxFailureFrames);
  for (std::size_t i = 0; i < count; ++i) {
    Frame frame;
    frame.offset = event.frames[i];
    std::uint64_t moved = 0;
    const MappedFile* file = image.FileAt(event.frames[i], moved);
    if (file != nullptr) {
      const auto same = [file](const Module& m) {
        return m.path == file->path;
      };
      frame.module = static_cast<std::size_t>(
          std::ranges::find_if(record.modules, same) - record.modules.begin());
      if (frame.module == record.modules.size()) {
        record.modules.push_back(image.ModuleOf(*file));
      }
      frame.offset -= moved;
    }
    record.stack.push_back(frame);
  }
}

Record RecordOf(const ProcessImage& image, const Ring& ring,
                const FailureEvent& event) {
  Record record;
  record.time_us = static_cast<std::int64_t>(event.time_ns / 1000);
  record.time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ",
                                 absl::FromUnixMicros(record.time_us),
                                 absl::UTCTimeZone());
  // In a container a process calls itself by another number.
  record.pid = image.is_core() ? static_cast<std::uint64_t>(event.process_id)
                               : image.pid();
  record.program = image.program();
  record.variant = ring.variant;
  record.version = ring.version;
  record.memory = Memory{event.memory.granted,  event.memory.cached,
                         event.memory.mapped,   event.memory.peak_mapped,
                         event.memory.metadata, event.memory.largest_free,
                         std::nullopt};
  if (event.live_bytes != kLiveNotCounted) {
    record.memory->live = event.live_bytes;
  }
  record.sequence = event.sequence;
  record.tid = static_cast<std::uint64_t>(event.thread_id);
  record.thread = Text(event.thread_name);
  record.call = CallName(event.call);
  record.size = event.size_bytes;
  record.alignment = event.alignment_bytes;
  if (event.count != 0) record.count = event.count;
  record.route = RouteName(event.route);
  if (event.class_bytes != 0) record.class_bytes = event.class_bytes;
  record.reason = FailureReasonName(event.reason);
  record.detail = FailureDetailName(event.detail);
  record.disposition = DispositionName(event.disposition);
  record.attempts = event.attempts;
  if (event.error_number != 0) {
    const std::string name = ErrorName(event.error_number);
    record.refused = Refused{
        VmCallName(event.refused_call),
        name.empty() ? absl::StrCat("errno ", event.error_number) : name,
        event.refused_bytes};
  }
  if (event.limit_name[0] != '\0') {
    Limit limit;
    limit.name = Text(event.limit_name);
    limit.source = Text(event.limit_source);
    limit.value = event.limit_value;
    limit.needed = event.limit_needed;
    if (event.reason != FailureReason::kThreshold) limit.use = event.limit_use;
    record.limit = std::move(limit);
  }
  AddStack(image, event, record);
  return record;
}

int Failures(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) {
    return WrongUsage(
        "name one process, or one core file (hakmem help failures)");
  }
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(arguments[0]);
  if (!image.ok()) return NotDone(ForTerminal(image.status().message()));
  const absl::StatusOr<Ring> ring = ReadRing(*image);
  if (!ring.ok()) return NotDone(ForTerminal(ring.status().message()));
  if (ring->recorded == 0 && !absl::GetFlag(FLAGS_json)) {
    PrintOut(absl::StrCat("No call of process ", image->pid(), " (",
                          ForTerminal(image->program()),
                          ") has failed: hakmem ", ring->version, " ",
                          ring->variant, ".\n"));
    return 0;
  }
  if (ring->recorded != 0 && ring->events.empty()) {
    return NotDone(absl::StrCat(
        Count(ring->recorded, "failure", "failures"), " of ",
        ForTerminal(image->Who()),
        " could not be read: they were being written (once more may help)"));
  }
  Analysis analysis;
  std::vector<Input> inputs(1);
  inputs[0].name = arguments[0];
  for (const FailureEvent& event : ring->events) {
    Record record = RecordOf(*image, *ring, event);
    if (&event == &ring->events.back()) {
      record.dropped = ring->recorded - ring->events.size();
    }
    analysis.Add(0, record);
    ++inputs[0].records;
  }
  Symbolizer symbols(
      {absl::GetFlag(FLAGS_symbolizer), absl::GetFlag(FLAGS_symbols)});
  for (const Cause& cause : analysis.causes()) {
    for (const CallSite& site : cause.sites) {
      symbols.Resolve(analysis.modules(), site.stack);
    }
  }
  const Report report = {inputs, analysis, symbols, /*of_process=*/true};
  PrintOut(absl::GetFlag(FLAGS_json)
               ? ReportAsJson(report)
               : ReportAsText(report, absl::GetFlag(FLAGS_sites)));
  return 0;
}

}  // namespace

constexpr Command kFailuresCommand = {
    "failures",
    "the failed allocations that a running process or a core file keeps",
    "[--FLAG…] PID|NAME|CORE",
    R"(
Reads the last 256 failed calls out of the memory of a process that runs on
hakmem, or of its core file, and explains them as `hakmem explain` does.
The process needs no option for it and is neither stopped nor disturbed.
What a process that has not ended has of the kernel's protection against
debuggers holds here, too: it takes the process's user, or root.

Exit status: 0 when the failures could be read, 1 when not, 2 for a wrong
command line.)",
    kFlags,
    Failures,
    OneProcessNamed,
};

}  // namespace hakmem::tools
