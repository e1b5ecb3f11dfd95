// Where the tables lie that know all blocks: for readers in other processes, by
// the exported symbol hakmem_block_tables (docs/process_tables.md).
//
// Owns: the layout. Called by: who has such tables, frontend; `hakmem heap
// --by-class` reads them. Thread-safety: constants.
//
// Invariants:
//   BK1: fields are only ever added at the end; `version` changes when one of
//        the others, or the encodings of block_header.h, change their meaning.
#ifndef HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_TABLES_H_
#define HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_TABLES_H_

#include <cstdint>

namespace hakmem {

struct ZoneTables {
  std::uint32_t granule_shift;     // a header byte for each granule
  std::uint32_t descriptor_bytes;  // of a unit
  const void* frame_count;         // an uint32_t: SuperSlabs, from 0 on
  const void* headers;             // a pointer to the first header byte
  const void* descriptors;         // a pointer to the first unit's descriptor
};

struct HugeTables {
  const void* first;  // an uint32_t: a block's number; all ones: there is none
  const void* headers;  // a pointer to the first header byte, by number
  const void* records;  // a pointer to the first record, by number
  std::uint32_t record_bytes;
  std::uint32_t bytes_offset;  // in a record: the block's length, an uint64_t
  std::uint32_t next_offset;   // and the next block's number, a greater one
  std::uint32_t unused;
};

struct BlockTables {
  static constexpr std::uint32_t kVersion = 2;
  static constexpr unsigned kZones = 2;

  char magic[8];  // "hakblok" and NUL
  std::uint32_t version;
  std::uint32_t table_bytes;  // of this structure
  std::uint32_t unit_shift;
  std::uint32_t units_per_frame;
  std::uint32_t record_distance_bytes;  // of unit records before headers
  std::uint32_t classes;
  std::uint32_t layout_step_bytes;  // from one class's layout to the next
  std::uint32_t unused;
  const void* class_layouts;  // uint32_t: bytes of a block, units, blocks
  ZoneTables zones[kZones];
  HugeTables huge;
  // Of guarded blocks, each an uint64_t.
  const void* guarded_blocks;
  const void* guarded_bytes;
  // A descriptor that is no unit's, and where it has a span's length in units
  // (uint16_t), what is inaccessible at its end in KiB (uint8_t), and what it
  // was asked for with, or 0 (uint64_t).
  const void* descriptor;
  const void* span_units;
  const void* span_guard_kib;
  const void* span_requested_bytes;
  const char* hakmem_version;  // text
  const char* variant;
  // Where the descriptor of a slab's first unit has how many blocks the slab
  // has room for (uint16_t), how many of these, the first ones, were ever
  // handed out (uint32_t), and how many of those are back (uint32_t).
  const void* slab_capacity;
  const void* slab_bump;
  const void* slab_free_count;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SUPERSLAB_BLOCK_TABLES_H_
