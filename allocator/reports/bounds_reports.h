// The reports of what only variants that keep bounds can know: the exact words.
//
// Owns: the text. Called by: core. Thread-safety: as MisuseReport.
#ifndef HAKMEM_ALLOCATOR_REPORTS_BOUNDS_REPORTS_H_
#define HAKMEM_ALLOCATOR_REPORTS_BOUNDS_REPORTS_H_

#include <cstddef>

#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/reports/block_report.h"

namespace hakmem {

// The canary behind the block was overwritten, first `at_bytes` from its start.
//   overflow of 0xP (byte 100 of a block of 100 bytes was written, class 112,
//   owner heap 1)
HAK_COLD void FatalOverflow(const BlockReport& block, std::size_t size_bytes,
                            std::size_t at_bytes);

// A free block was written to, or what lies between a live block's canary and
// its end was: `at_bytes` from its start. The eight bytes from there on are
// shown.
//   write after free of 0xP (8 bytes from offset 16: 41 41 41 41 00 00 00 00,
//   class 112)
HAK_COLD void FatalWriteAfterFree(const BlockReport& block,
                                  std::size_t at_bytes);

// The block is freed by another family of functions than it was allocated by.
//   mismatched free of 0xP (allocated by new[], freed by delete, class 112,
//   owner heap 1)
//   mismatched realloc of 0xP (allocated by new, class 112, owner heap 1)
HAK_COLD void FatalMismatch(const BlockReport& block, BlockKind allocated_by,
                            BlockKind freed_by);

// A sized free names another size than the block was asked for with.
//   wrong-size free of 0xP (given 60 bytes, asked for with 64 bytes, class 80,
//   owner heap 1)
HAK_COLD void FatalOtherSize(const BlockReport& block, std::size_t given_bytes,
                             std::size_t size_bytes);

// A call that copies, and one side of it: from `at_bytes` on, `bytes` of a
// block.
struct CopySide {
  bool written;
  std::size_t at_bytes;
  std::size_t bytes;
};

// The block ends before the side does. Nothing was copied yet.
//   overflow of 0xP (memcpy of 80 bytes to byte 0 of a block of 56 bytes, class
//   64, owner heap 1)
//   read past the end of 0xP (memcpy of 80 bytes from byte 0 of a block of 56
//   bytes, class 64, owner heap 1)
HAK_COLD void FatalCopyPastEnd(const BlockReport& block, std::size_t size_bytes,
                               const CopySide& side);

// The block was freed. Nothing was copied yet.
//   write after free of 0xP (memcpy of 80 bytes to byte 0, class 64, owner heap
//   1, state free)
//   read after free of 0xP (memcpy of 80 bytes from byte 0, class 64, owner
//   heap 1, state free)
HAK_COLD void FatalCopyAfterFree(const BlockReport& block, const char* state,
                                 const CopySide& side);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_BOUNDS_REPORTS_H_
