// HAKMEM_LEAKS: what was never freed, by the place that allocated it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/ace/ace.h"
#include "allocator/base/json_text.h"
#include "allocator/base/line_end.h"
#include "allocator/base/raw_print.h"
#include "allocator/frontend/block_history.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/exit_output.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/process/process.h"
#include "allocator/reports/report_text.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

// So many places are listed; the rest is summed up.
constexpr unsigned kMaxPlaces = 100;

struct Place {
  StackId stack = 0;  // 0: blocks whose stack was not kept
  StackTally tally;
};

struct Leaks {
  StackTally total;
  StackTally without_stack;
  std::uint64_t places = 0;
  StackTally listed;
  unsigned count = 0;
  Place largest[kMaxPlaces] = {};  // by bytes, then by blocks
};

// One process reports once; too large for a small stack.
constinit Leaks g_leaks;
constinit char g_json[16 * 1024];

void Add(StackTally& tally, const StackTally& more) {
  tally.blocks += more.blocks;
  tally.bytes += more.bytes;
}

void AddPlace(StackId stack, const StackTally& tally) {
  if (tally.blocks == 0) return;
  ++g_leaks.places;
  const auto larger = [](const StackTally& a, const StackTally& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.blocks > b.blocks;
  };
  unsigned at = g_leaks.count;
  while (at > 0 && larger(tally, g_leaks.largest[at - 1].tally)) --at;
  if (at == kMaxPlaces) return;
  g_leaks.count = std::min(g_leaks.count + 1, kMaxPlaces);
  std::copy_backward(g_leaks.largest + at, g_leaks.largest + g_leaks.count - 1,
                     g_leaks.largest + g_leaks.count);
  g_leaks.largest[at] = {stack, tally};
}

void AddBlock(StackId stack, std::uint64_t bytes) {
  const StackTally one = {1, bytes};
  Add(g_leaks.total, one);
  Add(stack == 0 ? g_leaks.without_stack : internal::g_stacks.TallyOf(stack),
      one);
}

void CountLeaks() {
  ProductGuards().VisitLive([](std::size_t bytes, const CallStack& stack) {
    AddBlock(internal::g_stacks.Intern({stack.addresses, stack.count}), bytes);
  });
  VisitLiveBlocks(
      ProductAce(),
      [](void*, const void* start, const LiveBlock& block) {
        const BlockRecord* record = internal::g_records.Find(start);
        AddBlock(record == nullptr
                     ? 0
                     : record->allocation_stack.load(std::memory_order_relaxed),
                 block.size_bytes);
      },
      nullptr);
  const StackDepot& stacks = internal::g_stacks;
  for (StackId id = stacks.Next(0); id != 0; id = stacks.Next(id)) {
    AddPlace(id, internal::g_stacks.TallyOf(id));
  }
  AddPlace(0, g_leaks.without_stack);
  for (unsigned i = 0; i < g_leaks.count; ++i) {
    Add(g_leaks.listed, g_leaks.largest[i].tally);
  }
}

RawPrinter& PrintTally(const StackTally& tally, RawPrinter& out) {
  out.Decimal(tally.bytes).Text(tally.bytes == 1 ? " byte in " : " bytes in ");
  return out.Decimal(tally.blocks)
      .Text(tally.blocks == 1 ? " block" : " blocks");
}

// Each of these returns 0, or the errno of what could not be written.
int WriteText(int fd) {
  for (unsigned i = 0; i < g_leaks.count; ++i) {
    const Place& place = g_leaks.largest[i];
    RawPrinter out;
    PrintTally(place.tally, out.Text("hakmem: leak: "));
    out.Text(place.stack != 0 ? ", allocated at\n" : ", no stack was kept\n");
    WriteFd(fd, out.text());
    WriteFrames(fd, internal::g_stacks.Frames(place.stack));
  }
  RawPrinter out;
  if (g_leaks.places > g_leaks.count) {
    const StackTally rest = {g_leaks.total.blocks - g_leaks.listed.blocks,
                             g_leaks.total.bytes - g_leaks.listed.bytes};
    PrintTally(rest, out.Text("hakmem: leak: "));
    out.Text(", from ").Decimal(g_leaks.places - g_leaks.count);
    out.Text(" more places\n");
  }
  PrintTally(g_leaks.total, out.Text("hakmem: leaks: "));
  out.Text(" never freed, from ").Decimal(g_leaks.places);
  out.Text(g_leaks.places == 1 ? " place" : " places");
  out.Text(LineEnd().text());
  return TryWriteFd(fd, out.text());
}

// One line each, and a last one with the total.
int WriteJson(int fd) {
  const auto process_id = static_cast<std::uint64_t>(ProcessId());
  for (unsigned i = 0; i < g_leaks.count; ++i) {
    const Place& place = g_leaks.largest[i];
    JsonText line(g_json, sizeof(g_json));
    line.Raw("{\"kind\":\"leak\",\"process_id\":").Number(process_id);
    line.Key("blocks").Number(place.tally.blocks);
    line.Key("bytes").Number(place.tally.bytes).Key("frames");
    const std::size_t before = line.length();
    AddFramesJson(internal::g_stacks.Frames(place.stack), line);
    if (line.overflowed()) {
      line.Rewind(before);
      line.Raw("[]");
    }
    const int error_number = TryWriteFd(fd, line.Raw("}\n").text());
    if (error_number != 0) return error_number;
  }
  JsonText line(g_json, sizeof(g_json));
  line.Raw("{\"kind\":\"total\",\"process_id\":").Number(process_id);
  line.Key("blocks").Number(g_leaks.total.blocks);
  line.Key("bytes").Number(g_leaks.total.bytes);
  line.Key("places").Number(g_leaks.places);
  line.Key("stacks_not_kept").Number(internal::g_stacks.dropped());
  return TryWriteFd(fd, line.Raw("}\n").text());
}

}  // namespace

void ReportLeaks(const char* value) {
  CountLeaks();
  const int fd = OpenExitOutput("HAKMEM_LEAKS", value, FileReaders::kOwner);
  if (fd < 0) return;
  const bool as_text = std::strcmp(value, "1") == 0;
  CloseExitOutput("HAKMEM_LEAKS", value, fd,
                  as_text ? WriteText(fd) : WriteJson(fd));
}

}  // namespace hakmem
