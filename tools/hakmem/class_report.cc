
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "allocator/statistics/statistics.h"
#include "tools/hakmem/free_blocks.h"
#include "tools/hakmem/process_blocks.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

using Json = nlohmann::ordered_json;

void AddRow(std::string_view name, const BlockSum& sum, Table& table) {
  if (sum.taken_bytes == 0 && sum.blocks == 0) return;
  table.Add({std::string(name), "", Grouped(sum.blocks), Grouped(sum.bytes), "",
             Grouped(sum.taken_bytes), Percent(sum.bytes, sum.taken_bytes)});
}

Json AsJson(const BlockSum& sum) {
  return {{"live_blocks", sum.blocks},
          {"live_bytes", sum.bytes},
          {"taken_bytes", sum.taken_bytes}};
}

void AddRow(std::string_view name, const FreeBlocks& free, Table& table) {
  if (free.all() == 0) return;
  table.Add({std::string(name), Grouped(free.all()), Grouped(free.cached),
             Grouped(free.holes), Grouped(free.fresh)});
}

std::string FreeAsText(const ProcessBlocks& blocks) {
  Table table({"blocks of", "free", "cached", "holes", "fresh"});
  FreeBlocks all;
  FreeBlocks bytes;
  for (std::size_t i = 0; i < blocks.free.size(); ++i) {
    const FreeBlocks& free = blocks.free[i];
    const std::uint64_t block_bytes = blocks.classes[i].block_bytes;
    AddRow(Grouped(block_bytes), free, table);
    all += free;
    bytes += {.cached = free.cached * block_bytes,
              .holes = free.holes * block_bytes,
              .fresh = free.fresh * block_bytes};
  }
  AddRow("all", all, table);
  return absl::StrCat("Free in slabs: ", Bytes(bytes.cached),
                      " cached by threads, ", Bytes(bytes.holes), " in holes, ",
                      Bytes(bytes.fresh), " fresh\n\n", table.Text());
}

}  // namespace

std::string ClassesAsText(const ProcessBlocks& blocks) {
  const BlockSum total = blocks.Total();
  Table table(
      {"blocks of", "slabs", "live", "bytes live", "free", "taken", "used"});
  for (const ClassStatistics& entry : blocks.classes) {
    if (entry.slabs == 0) continue;
    table.Add({Grouped(entry.block_bytes), Grouped(entry.slabs),
               Grouped(entry.live_blocks), Grouped(entry.live_bytes()),
               Grouped(entry.free_blocks), Grouped(entry.slab_bytes()),
               Percent(entry.live_bytes(), entry.slab_bytes())});
  }
  AddRow("spans", blocks.spans, table);
  AddRow("huge", blocks.huge, table);
  AddRow("guarded", blocks.guarded, table);
  AddRow("all", total, table);
  return absl::StrCat(ForTerminal(blocks.program), "[", blocks.pid,
                      "]: ", Count(total.blocks, "block", "blocks"), " of ",
                      Bytes(total.bytes), " live, in ",
                      Bytes(total.taken_bytes), "\n\n", table.Text(), "\n",
                      FreeAsText(blocks));
}

std::string ClassesAsJson(const ProcessBlocks& blocks) {
  Json json = {
      {"schema", "hakmem-classes"},    {"version", 1},
      {"hakmem", blocks.version},      {"pid", blocks.pid},
      {"program", blocks.program},     {"variant", blocks.variant},
      {"all", AsJson(blocks.Total())}, {"spans", AsJson(blocks.spans)},
      {"huge", AsJson(blocks.huge)},   {"guarded", AsJson(blocks.guarded)},
      {"classes", Json::array()}};
  for (std::size_t i = 0; i < blocks.classes.size(); ++i) {
    const ClassStatistics& entry = blocks.classes[i];
    if (entry.slabs == 0) continue;
    json["classes"].push_back({{"block_bytes", entry.block_bytes},
                               {"slabs", entry.slabs},
                               {"taken_bytes", entry.slab_bytes()},
                               {"live_blocks", entry.live_blocks},
                               {"live_bytes", entry.live_bytes()},
                               {"free_blocks", entry.free_blocks},
                               {"cached_blocks", blocks.free[i].cached},
                               {"hole_blocks", blocks.free[i].holes},
                               {"fresh_blocks", blocks.free[i].fresh}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hakmem::tools
