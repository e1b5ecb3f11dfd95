// All blocks of an allocator for readers from outside: where its tables lie.
//
// Owns: nothing. Called by: frontend, for a constant. Thread-safety: made at
// compile time.
#ifndef HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_
#define HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator_parts.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Of no unit: it tells readers where in one the fields lie.
inline constexpr UnitDescriptor kDescriptorModel = {};

template <const Config& kConfig>
constexpr BlockTables DescribeBlocks(WholeAllocator<kConfig>& allocator,
                                     const char* hakmem_version) {
  const GuardedBlocks& guarded = allocator.parts().guards;
  const Region& region = allocator.ace().region();
  return {
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
      .zones = {region.fine().Describe<ZoneTables>(kFineShape),
                region.coarse().Describe<ZoneTables>(kCoarseShape)},
      .huge = allocator.parts().ace.huge.Describe(),
      .guarded_blocks = &guarded.live_blocks_word(),
      .guarded_bytes = &guarded.live_bytes_word(),
      .descriptor = &kDescriptorModel,
      .span_units = &kDescriptorModel.span_units,
      .span_guard_kib = &kDescriptorModel.span_guard_kib,
      .span_requested_bytes = &kDescriptorModel.use.requested_bytes,
      .hakmem_version = hakmem_version,
      .variant = kConfig.name,
      .slab_capacity = kDescriptorModel.slab.capacity_word(),
      .slab_bump = kDescriptorModel.slab.bump_word(),
      .slab_free_count = kDescriptorModel.slab.free_count_word()};
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_BLOCK_TABLES_DESCRIPTION_H_
