// An address and what it is to hakmem, as reports tell it.
//
// Owns: nothing. Called by: lookup finds the facts (lookup.h), reports print
// them. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_REPORTS_ADDRESS_FACTS_H_
#define HAKMEM_ALLOCATOR_REPORTS_ADDRESS_FACTS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/raw_print.h"
#include "allocator/reports/block_report.h"

namespace hakmem {

enum class AddressKind : std::uint8_t {
  kForeign,     // not hakmem's memory
  kBlock,       // in a block, or in a place for one; its state says which
  kGuard,       // in a guard page behind a slab or span
  kEmpty,       // among the blocks of no bytes, which nobody can access
  kSlabEnd,     // behind the last block of a slab
  kFreeMemory,  // mapped, but in no slab or span
  kUnmapped,    // a part of the region that is given back, or never was mapped
  kTable,       // where hakmem keeps its own tables
  kGuarded,     // among the guarded blocks, each on pages of its own
};

struct BlockFacts {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;  // of its class, or of the span
  // The bytes it takes up, if those are more; 0: they are not.
  std::size_t reach_bytes = 0;
  Route route = Route::kTiny;
  std::uint32_t owner_heap = 0;  // 0: none
  bool live = false;
  // "live", "free", "queued", "released", "never used".
  const char* state = "";
  // The header of a slab's block, 0 if it was never used; what it would be,
  // were it live; and whether it is that of no block that can be there.
  std::uint8_t header = 0;
  std::uint8_t expected_header = 0;
  bool damaged = false;
  // The size that the program asked for, in variants that know it.
  std::size_t requested_bytes = kNotKnown;

  static constexpr std::size_t kNotKnown = ~std::size_t{0};
};

struct AddressFacts {
  AddressKind kind = AddressKind::kForeign;
  BlockFacts block;  // kBlock
  // In no block: the live block that ends not far before the address.
  bool has_before = false;
  BlockFacts before;
};

// An address, and what lies beside the block that it is in.
struct Surroundings {
  AddressFacts at;
  // Facts of the bytes just before and after the block; only if at is kBlock.
  AddressFacts before;
  AddressFacts after;
};

// "class 64", "span of 196608 bytes"
void PrintKind(Route route, std::size_t bytes, RawPrinter& out);
// "0xS (class 64, owner heap 1, live)", with "asked for with 50 bytes, " where
// that is known.
void PrintBlock(const BlockFacts& block, RawPrinter& out);

// "16 bytes into the live block 0xS (class 64, …)", "not hakmem's memory", …
void PrintAddress(std::uintptr_t address, const AddressFacts& facts,
                  RawPrinter& out);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_ADDRESS_FACTS_H_
