// All blocks of an allocator for readers from outside: where its tables lie.
//
// Owns: nothing. Called by: frontend, for a constant. Thread-safety: made at
// compile time.
#ifndef HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_
#define HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

template <const Config& kConfig>
struct BlockTablesDescription {
  static constexpr UnitDescriptor kDescriptor = {};

  static constexpr BlockTables Of(const Allocator<kConfig>& allocator,
                                  const char* hakmem_version) {
    const GuardedBlocks& guarded = allocator.guards_.blocks();
    BlockTables tables = {
        .magic = "hakblok",
        .version = BlockTables::kVersion,
        .table_bytes = sizeof(BlockTables),
        .unit_shift = kUnitShift,
        .units_per_frame = kUnitsPerSuperSlab,
        .record_distance_bytes = kRecordDistanceBytes,
        .classes = kClassCount,
        .layout_step_bytes = sizeof(ClassLayout),
        .unused = 0,
        .class_layouts = &kClassLayouts.data()->block_bytes,  // not [0]: gcc 16
        .zones = {},
        .huge = {},
        .guarded_blocks = &guarded.live_blocks_word(),
        .guarded_bytes = &guarded.live_bytes_word(),
        .descriptor = &kDescriptor,
        .span_units = &kDescriptor.span_units,
        .span_guard_kib = &kDescriptor.span_guard_kib,
        .span_requested_bytes = &kDescriptor.use.requested_bytes,
        .hakmem_version = hakmem_version,
        .variant = kConfig.name,
        .slab_capacity = kDescriptor.slab.capacity_word(),
        .slab_bump = kDescriptor.slab.bump_word(),
        .slab_free_count = kDescriptor.slab.free_count_word()};
    allocator.ace_.Describe(tables);
    return tables;
  }
};

template <const Config& kConfig>
constexpr BlockTables DescribeBlocks(const Allocator<kConfig>& allocator,
                                     const char* hakmem_version) {
  return BlockTablesDescription<kConfig>::Of(allocator, hakmem_version);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_
