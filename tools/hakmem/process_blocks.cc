#include "tools/hakmem/process_blocks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/block_tables.h"
#include "tools/hakmem/free_blocks.h"
#include "tools/hakmem/huge_blocks.h"

namespace hakmem::tools {
namespace {

constexpr char kMagic[8] = "hakblok";
constexpr std::uint32_t kUnits = 32;  // of a SuperSlab
constexpr std::uint32_t kMaxFrames = 1 << 24;
constexpr std::uint32_t kMaxRecordBytes = 1 << 12;
// A SuperSlab whose units change hands while it is read is read again.
constexpr int kTries = 5;

using Records = std::array<UnitRecord, kUnits>;

// As it lies in the process.
struct Layout {
  std::uint32_t block_bytes;
  std::uint32_t slab_units;
  std::uint32_t capacity;
};

struct Zone {
  std::uint32_t frames = 0;
  std::uint32_t granule_shift = 0;
  std::uint32_t descriptor_bytes = 0;
  std::uint64_t headers = 0;
  std::uint64_t descriptors = 0;
};

// What one SuperSlab has.
struct FrameSums {
  struct OfClass {
    std::uint32_t slabs = 0;
    std::uint64_t live_blocks = 0;
    FreeBlocks free;
  };
  std::vector<OfClass> classes;
  BlockSum spans;
};

class BlocksReader {
 public:
  explicit BlocksReader(const ProcessImage& image) : image_(image) {}

  absl::Status Find() {
    const absl::Status status = image_.ReadTables(
        "hakmem_block_tables", "it does not say where its tables of blocks lie",
        tables_);
    if (!status.ok()) return status;
    return IsKnown() && slab_words_.Find(tables_)
               ? ReadLayouts()
               : image_.UnknownForm("keeps its blocks");
  }

  absl::StatusOr<ProcessBlocks> Count() {
    found_.free.resize(found_.classes.size());
    for (const ZoneTables& tables : tables_.zones) {
      if (absl::Status status = CountZone(tables); !status.ok()) return status;
    }
    const absl::StatusOr<BlockSum> huge = CountHugeBlocks(image_, tables_.huge);
    if (!huge.ok()) return huge.status();
    found_.huge = *huge;
    const absl::Status status =
        TableReads(image_)
            .At(tables_.guarded_blocks, found_.guarded.blocks)
            .At(tables_.guarded_bytes, found_.guarded.bytes)
            .status();
    if (!status.ok()) return status;
    found_.version = image_.ReadText(AddressOf(tables_.hakmem_version));
    found_.variant = image_.ReadText(AddressOf(tables_.variant));
    found_.pid = image_.pid();
    found_.program = image_.program();
    return std::move(found_);
  }

 private:
  bool IsKnown() const {
    const auto is_known = [](const ZoneTables& zone) {
      return zone.granule_shift != 0 && zone.granule_shift <= 16 &&
             zone.descriptor_bytes != 0 &&
             zone.descriptor_bytes <= kMaxRecordBytes;
    };
    return std::memcmp(tables_.magic, kMagic, sizeof(kMagic)) == 0 &&
           tables_.version == BlockTables::kVersion &&
           tables_.table_bytes >= sizeof(tables_) && tables_.unit_shift == 16 &&
           tables_.units_per_frame == kUnits &&
           tables_.classes < kSampledCode &&
           tables_.layout_step_bytes >= sizeof(Layout) &&
           tables_.layout_step_bytes <= kMaxRecordBytes &&
           std::ranges::all_of(tables_.zones, is_known) &&
           tables_.huge.record_bytes <= kMaxRecordBytes &&
           tables_.huge.bytes_offset + sizeof(std::uint64_t) <=
               tables_.huge.record_bytes &&
           tables_.huge.next_offset + sizeof(std::uint32_t) <=
               tables_.huge.record_bytes;
  }

  absl::Status ReadLayouts() {
    for (std::uint32_t i = 0; i < tables_.classes; ++i) {
      Layout layout = {};
      const absl::Status status =
          TableReads(image_)
              .At(AddressOf(tables_.class_layouts) +
                      std::uint64_t{i} * tables_.layout_step_bytes,
                  layout)
              .status();
      if (!status.ok()) return status;
      const std::uint64_t slab_bytes = std::uint64_t{layout.slab_units}
                                       << tables_.unit_shift;
      if (layout.slab_units == 0 || layout.slab_units > kUnits ||
          layout.block_bytes == 0 || layout.capacity == 0 ||
          std::uint64_t{layout.block_bytes} * layout.capacity > slab_bytes) {
        return absl::DataLossError(
            absl::StrCat("the size classes of ", image_.Who(), " are damaged"));
      }
      layouts_.push_back(layout);
      found_.classes.push_back(
          {.block_bytes = layout.block_bytes,
           .bytes_per_slab = static_cast<std::uint32_t>(slab_bytes)});
    }
    return absl::OkStatus();
  }

  absl::Status CountZone(const ZoneTables& tables) {
    Zone zone = {.granule_shift = tables.granule_shift,
                 .descriptor_bytes = tables.descriptor_bytes};
    absl::Status status = TableReads(image_)
                              .At(tables.frame_count, zone.frames)
                              .At(tables.headers, zone.headers)
                              .At(tables.descriptors, zone.descriptors)
                              .status();
    if (status.ok() && zone.frames > kMaxFrames) {
      status = absl::DataLossError(
          absl::StrCat("the tables of ", image_.Who(), " are damaged"));
    }
    for (std::uint32_t frame = 0; status.ok() && frame < zone.frames; ++frame) {
      status = CountFrame(zone, frame);
    }
    return status;
  }

  absl::Status CountFrame(const Zone& zone, std::uint32_t frame) {
    const std::uint64_t records_at = zone.headers -
                                     tables_.record_distance_bytes +
                                     std::uint64_t{frame} * sizeof(Records);
    Records records = {};
    absl::Status status = TableReads(image_).At(records_at, records).status();
    FrameSums sums;
    for (int tries = 0; status.ok() && tries < kTries; ++tries) {
      // Nothing of it is anybody's.
      if (records == Records{}) return status;
      sums = {.classes = std::vector<FrameSums::OfClass>(layouts_.size()),
              .spans = {}};
      status = CountUnits(zone, frame, records, sums);
      Records after = {};
      if (status.ok())
        status = TableReads(image_).At(records_at, after).status();
      if (records == after) break;
      records = after;
    }
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      found_.classes[i].slabs += sums.classes[i].slabs;
      found_.classes[i].live_blocks += sums.classes[i].live_blocks;
      found_.classes[i].free_blocks += sums.classes[i].free.all();
      found_.free[i] += sums.classes[i].free;
    }
    found_.spans.blocks += sums.spans.blocks;
    found_.spans.bytes += sums.spans.bytes;
    found_.spans.taken_bytes += sums.spans.taken_bytes;
    return status;
  }

  absl::Status CountUnits(const Zone& zone, std::uint32_t frame,
                          const Records& records, FrameSums& sums) {
    absl::Status status;
    for (std::uint32_t i = 0; status.ok() && i < kUnits; ++i) {
      const UnitRecord record = records[i];
      const std::uint32_t unit = frame * kUnits + i;
      if (record == 0) continue;
      if (UnitOwner(record) == kSpanOwner) {
        status = CountSpan(zone, unit, record, sums.spans);
        continue;
      }
      // A damaged record names no class.
      const std::uint32_t size_class = HeaderCode(UnitLiveHeader(record)) - 1U;
      if (size_class >= layouts_.size()) continue;
      const Layout& layout = layouts_[size_class];
      if (i % layout.slab_units != 0) continue;
      status = CountSlab(zone, unit, record, sums.classes[size_class], layout);
    }
    return status;
  }

  absl::Status CountSlab(const Zone& zone, std::uint32_t unit,
                         UnitRecord record, FrameSums::OfClass& sum,
                         const Layout& layout) {
    const std::uint32_t unit_headers =
        1U << (tables_.unit_shift - zone.granule_shift);
    const std::uint32_t step = layout.block_bytes >> zone.granule_shift;
    headers_.resize(std::size_t{layout.capacity - 1} * step + 1);
    const absl::Status status =
        image_.Read(zone.headers + std::uint64_t{unit} * unit_headers,
                    headers_.data(), headers_.size());
    if (!status.ok()) return status;
    const HeaderByte live = UnitLiveHeader(record);
    std::uint32_t blocks = 0;
    for (std::uint32_t i = 0; i < layout.capacity; ++i) {
      const HeaderByte header = headers_[std::size_t{i} * step];
      if (header == live || IsMarkedHeader(header, record)) ++blocks;
    }
    ++sum.slabs;
    sum.live_blocks += blocks;
    return CountFree(zone, unit, blocks, sum, layout);
  }

  absl::Status CountFree(const Zone& zone, std::uint32_t unit,
                         std::uint32_t live_blocks, FrameSums::OfClass& sum,
                         const Layout& layout) {
    descriptor_.resize(slab_words_.bytes());
    const absl::Status status = image_.Read(
        zone.descriptors + std::uint64_t{unit} * zone.descriptor_bytes,
        descriptor_.data(), descriptor_.size());
    if (!status.ok()) return status;
    sum.free += slab_words_.Split(descriptor_, layout.capacity, live_blocks);
    return status;
  }

  // A span that somebody frees or resizes at the moment is counted as what it
  // takes.
  absl::Status CountSpan(const Zone& zone, std::uint32_t unit,
                         UnitRecord record, BlockSum& sum) const {
    const std::uint64_t header_at =
        zone.headers +
        (std::uint64_t{unit} << (tables_.unit_shift - zone.granule_shift));
    const std::uint64_t descriptor_at =
        zone.descriptors + std::uint64_t{unit} * zone.descriptor_bytes -
        AddressOf(tables_.descriptor);
    HeaderByte header = kNoBlock;
    std::uint16_t units = 0;
    std::uint8_t guard_kib = 0;
    std::uint64_t requested_bytes = 0;
    const auto field = [&](const void* of_descriptor) {
      return descriptor_at + AddressOf(of_descriptor);
    };
    absl::Status status =
        TableReads(image_)
            .At(header_at, header)
            .At(field(tables_.span_units), units)
            .At(field(tables_.span_guard_kib), guard_kib)
            .At(field(tables_.span_requested_bytes), requested_bytes)
            .status();
    if (!status.ok()) return status;
    const std::uint64_t taken_bytes = std::uint64_t{units}
                                      << tables_.unit_shift;
    sum.taken_bytes += taken_bytes;
    if (header != UnitLiveHeader(record) && !IsSampledHeader(header, record)) {
      return status;
    }
    std::uint64_t usable_bytes = taken_bytes - std::uint64_t{guard_kib} * 1024;
    if (requested_bytes != 0) {
      const auto page_bytes =
          static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
      usable_bytes = std::min(
          usable_bytes, (requested_bytes + page_bytes - 1) & ~(page_bytes - 1));
    }
    ++sum.blocks;
    sum.bytes += usable_bytes;
    return status;
  }

  const ProcessImage& image_;
  BlockTables tables_ = {};
  SlabWords slab_words_;
  std::vector<Layout> layouts_;
  std::vector<HeaderByte> headers_;  // of a slab
  std::vector<char> descriptor_;
  ProcessBlocks found_;
};

}  // namespace

BlockSum ProcessBlocks::Total() const {
  BlockSum total;
  for (const BlockSum* sum : {&spans, &huge, &guarded}) {
    total.blocks += sum->blocks;
    total.bytes += sum->bytes;
    total.taken_bytes += sum->taken_bytes;
  }
  for (const ClassStatistics& entry : classes) {
    total.blocks += entry.live_blocks;
    total.bytes += entry.live_bytes();
    total.taken_bytes += entry.slab_bytes();
  }
  return total;
}

absl::StatusOr<ProcessBlocks> CountBlocks(const ProcessImage& image) {
  BlocksReader reader(image);
  if (absl::Status status = reader.Find(); !status.ok()) return status;
  return reader.Count();
}

}  // namespace hakmem::tools
