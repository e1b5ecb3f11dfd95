// The boundary to the kernel's memory calls: an abstract class, so that every
// layer above runs on a fake that can refuse any call.
//
// Owns: nothing. Called by: superslab and ace; heap and core pass it down and
// ask it for page size and time.
// Thread-safety: every function may be called from any thread.
//
// Rules for all functions: addresses and sizes are non-zero multiples of
// PageBytes(); nothing allocates; errno is left as it was. Failures come back
// as VmStatus, never as a signal.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_VIRTUAL_MEMORY_H_
#define HAKMEM_ALLOCATOR_PLATFORM_VIRTUAL_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"

namespace hakmem {

// The kinds of calls.
enum class VmCall : std::uint8_t {
  kNone,
  kMap,
  kUnmap,
  kPurge,
  kMove,
  kProtect
};

// The result of one call: 0, or the kernel's errno.
struct VmStatus {
  int error_number = 0;
  // A refused Move: its target is not mapped, though it may have been.
  bool target_lost = false;
  // A Move that succeeded with keep_source: its source is not mapped.
  bool source_lost = false;
  // HAKMEM_FAIL_NTH refused the call, not the kernel.
  bool injected = false;
  // The call that MapAt or Move was refused, and how much it asked for.
  VmCall call = VmCall::kNone;
  std::size_t bytes = 0;
  bool ok() const { return error_number == 0; }
};

class VirtualMemory {
 public:
  // The kernel's page size, read at run time.
  virtual std::size_t PageBytes() const = 0;

  // Maps [address, address + bytes) readable, writable and zero. Fails with
  // EEXIST, changing nothing, when any page of the range is in use.
  virtual VmStatus MapAt(Address address, std::size_t bytes) = 0;

  // The same for a block of the program's: refused with ENOMEM where memory
  // could never hold it, as far as the kernel looks. Not for what stays sparse.
  virtual VmStatus MapBlock(Address address, std::size_t bytes) = 0;

  // Like MapAt, but nothing in the range can be read or written.
  virtual VmStatus Reserve(Address address, std::size_t bytes) = 0;

  // Makes part of a mapped range inaccessible, or fails, changing nothing;
  // which may split a mapping in three. Bytes keep their values.
  virtual VmStatus Protect(Address address, std::size_t bytes) = 0;
  // Makes a range that is inaccessible readable and writable again, or fails
  // likewise.
  virtual VmStatus Unprotect(Address address, std::size_t bytes) = 0;

  // Like MapAt, but closed: nothing can be read or written until Open.
  virtual VmStatus MapClosed(Address address, std::size_t bytes) = 0;
  // Closes part of a range that MapAt or MapClosed made, or fails, changing
  // nothing. What it held may be lost.
  virtual VmStatus Close(Address address, std::size_t bytes) = 0;
  // Opens a range, whatever of it is closed, or fails likewise.
  virtual VmStatus Open(Address address, std::size_t bytes) = 0;
  // Whether closing splits mappings, as it does on kernels without guard
  // regions (Linux before 6.13), or may: that is known after the first one.
  virtual bool ClosingSplits() const = 0;

  // Which pages of a mapped range are in memory: resident[i] is 1 or 0 for
  // each. A page that is not may still have data in swap.
  virtual VmStatus FindResident(Address address, std::size_t bytes,
                                unsigned char* resident) = 0;

  // How many mappings the kernel allows the process.
  virtual std::size_t MaxMappings() = 0;

  // Whether something is in the way of mapping in the range, as far as the
  // kernel tells; maps nothing. The range may be far longer than memory.
  virtual bool IsTaken(Address address, std::size_t bytes) = 0;

  // Unmaps a range that MapAt or Move made. May fail with ENOMEM when it would
  // split a mapping beyond the kernel's limit on mappings; the range then
  // stays as it was.
  virtual VmStatus Unmap(Address address, std::size_t bytes) = 0;

  // Gives the pages of a mapped range back; it stays mapped and reads as zero.
  // Pages of it that the program has locked are locked no more, unless it has
  // locked all of its memory.
  virtual VmStatus Purge(Address address, std::size_t bytes) = 0;

  // Asks for huge pages in a mapped range, when it is touched. A wish: the
  // kernel may have none, or be told not to use them.
  virtual void AskForHugePages(Address address, std::size_t bytes) = 0;

  // Takes the wish back: the kernel shall make no huge pages there, and none of
  // what is left of some.
  virtual void DeclineHugePages(Address address, std::size_t bytes) = 0;

  // Gives each page of a mapped range memory, so that touching it will not
  // fault; bytes keep their values. A wish, too.
  virtual void Populate(Address address, std::size_t bytes) = 0;

  // Moves the pages of mapped [from, from + bytes) to [to, to + bytes),
  // whatever is there, mapped or not. With `keep_source`, `from` is mapped
  // again and reads as zero (unless `source_lost`: there was no memory for it);
  // otherwise it is unmapped. The ranges do not overlap. On failure nothing has
  // moved, and all of `to` is mapped and reads as zero, ready to be copied to
  // (unless `target_lost`: then it is unmapped). Expect EFAULT: before
  // Linux 6.17 the kernel moves only what it keeps as one mapping.
  virtual VmStatus Move(Address from, Address to, std::size_t bytes,
                        bool keep_source) = 0;

  // Replaces a mapped range by a new mapping, which reads as zero and which the
  // kernel can keep as one with its neighbours: unlike pages that Move has put
  // somewhere. On failure all is as it was, unless `target_lost`: then the
  // range is unmapped.
  virtual VmStatus Renew(Address address, std::size_t bytes) = 0;

  // A number that an attacker cannot guess; a weaker one when the kernel has
  // none to give.
  virtual std::uint64_t Random() = 0;
  // So many of them, in few calls.
  virtual void FillRandom(std::uint64_t* words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) words[i] = Random();
  }

  // Monotonic time in milliseconds; cheap, may be some milliseconds coarse.
  virtual std::uint64_t NowMs() = 0;

  // The lowest and the first too high address at which the region may be
  // placed (sanitizers and small address spaces restrict it).
  struct AddressRange {
    Address begin;
    Address end;
  };
  virtual AddressRange RegionRange() const = 0;

 protected:
  // Objects are globals or locals; nobody deletes one through this class, and
  // a virtual destructor would need `operator delete`.
  ~VirtualMemory() = default;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_VIRTUAL_MEMORY_H_
