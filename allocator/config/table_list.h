// Where all tables lie that other processes read: for readers that find no
// symbol, by a note in the program's file (docs/process_tables.md).
//
// Owns: the layout. Called by: frontend; `hakmem` with a process reads it.
// Thread-safety: constants.
//
// A program that was linked statically exports no symbols, and a stripped one
// has none. A note is part of what is loaded: the program's own headers lead to
// it, in memory as in a core file.
//
// Invariants:
//   TB1: tables are only ever added at the end, each with a magic word and a
//        version of its own; `version` changes when that is no longer so.
#ifndef HAKMEM_ALLOCATOR_CONFIG_TABLE_LIST_H_
#define HAKMEM_ALLOCATOR_CONFIG_TABLE_LIST_H_

#include <cstdint>

namespace hakmem {

struct TableList {
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::uint32_t kTables = 6;
  // Of the note, whose name is kNoteName; its content is the distance from
  // itself to the list, an int64_t.
  static constexpr std::uint32_t kNoteType = 1;
  static constexpr char kNoteName[] = "hakmem";

  char magic[8];  // "haktabs" and NUL
  std::uint32_t version;
  std::uint32_t tables;  // how many pointers follow
  const void* failure_ring;
  const void* heap_tables;
  const void* statistics_tables;
  const void* block_tables;
  const void* control;
  const void* options;  // OptionTables; zeros until they have been read
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_TABLE_LIST_H_
