// The fatal reports: every way in which hakmem ends a process for what its
// user did, and the exact words.
//
// Owns: the text. Called by: core (and heap, for remote frees).
// Thread-safety: any thread; never allocates. Each function writes one
// sentence `hakmem: fatal: …`, details below it, and aborts (SIGABRT), unless
// HAKMEM_ON_MISUSE says otherwise: with `log` it is `hakmem: misuse: …`, and
// the function returns; its caller then leaves the block alone and returns,
// too.
#ifndef HAKMEM_ALLOCATOR_REPORTS_FATAL_H_
#define HAKMEM_ALLOCATOR_REPORTS_FATAL_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/reports/block_report.h"

namespace hakmem {

// The block is free already. `state`: "free" (in a heap's hands), "queued"
// (freed by another thread than its owner, and not filed yet) or "released"
// (its whole slab or span is free).
//   double free of 0xP (class 64, owner heap 3, state free)
//   double free of 0xP (span of 196608 bytes, state released)
//   double free of 0xP (block of size 0, state free)
//   realloc of freed block 0xP (class 64, owner heap 3, state free)
//   malloc_usable_size of freed block 0xP (class 64, owner heap 3, state free)
HAK_COLD void FatalFreedBlock(const BlockReport& block, const char* state);

// The pointer is inside the block that starts at `start`, which is live or not.
//   invalid free of 0xP (interior pointer: 16 bytes into the live block 0xS,
//   class 64) invalid realloc of 0xP (interior pointer: 16 bytes into the free
//   block 0xS, class 64)
HAK_COLD void FatalInteriorPointer(const BlockReport& block, const void* start,
                                   bool live);

// The pointer is in hakmem's region, but no block starts at or around it.
//   invalid free of 0xP (inside hakmem's region, but not a block)
HAK_COLD void FatalNotABlock(const BlockReport& block);

// The pointer is in none of hakmem's memory: stack, static, mmap, wild.
//   invalid free of 0xP (not hakmem's memory)
HAK_COLD void FatalForeignPointer(const BlockReport& block);

// A sized free names a size that the block cannot have been asked for with.
//   wrong-size free of 0xP (given 100 bytes, block of class 64, owner heap 3)
HAK_COLD void FatalWrongSize(const BlockReport& block, std::size_t given_bytes);

// The alignment given to an aligned free does not fit the block's address.
//   wrong-alignment free of 0xP (given alignment 4096, block of class 64, owner
//   heap 3)
HAK_COLD void FatalWrongAlignment(const BlockReport& block,
                                  std::size_t given_alignment);

// The detached header of the block holds what no sequence of calls can write.
//   damaged header of 0xP (found 0xa6, expected 0x47; class 64, owner heap 3)
[[noreturn]] HAK_COLD void FatalDamagedHeader(const BlockReport& block,
                                              std::uint8_t found,
                                              std::uint8_t expected);

// The calling thread waits for a lock that it holds itself: it was interrupted
// in a slow path by a signal handler that allocates, or that has jumped out, or
// what others have written into libc's functions allocates. Nothing can be
// refused here, so it ends the process whatever HAKMEM_ON_MISUSE says.
//   malloc or free called in the middle of malloc or free
[[noreturn]] HAK_COLD void FatalReentry(const char* variant);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_FATAL_H_
