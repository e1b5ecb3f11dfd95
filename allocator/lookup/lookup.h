// The one decoder of addresses: what lies at one, from the tables alone.
//
// Owns: nothing. Called by: core and the frontend, for frees and resizes that
// hot paths cannot do, reports, checked copies, and walks over the heap.
// Thread-safety: any thread, signal handlers included: no lock is waited for,
// and nothing outside of the mapped tables is read, whatever they hold. Changes
// that other threads make meanwhile may be seen or not.
//
// An address anywhere is for LookUp. Who has what must be the start of a live
// block, or must not spend more than some instructions, asks for that part of
// the answer alone: FindLiveBlock, SlabPlaceOf, LargeAt. Each table is read for
// an address in one place.
#ifndef HAKMEM_ALLOCATOR_LOOKUP_LOOKUP_H_
#define HAKMEM_ALLOCATOR_LOOKUP_LOOKUP_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/ace/huge_pool.h"
#include "allocator/base/compiler.h"
#include "allocator/base/route.h"
#include "allocator/slab/block_use.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {

struct AddressFacts;
struct Surroundings;

AddressFacts LookUp(Ace& ace, Address address);
// The same, with what lies before and after the block.
Surroundings LookAround(Ace& ace, Address address);

// Stands for the class that was asked for, of a sampled block.
inline constexpr SizeClass kSampledClass = kSampledCode - 1;

struct LiveBlock {
  Route route = Route::kTiny;
  SizeClass size_class = 0;  // Tiny, Pool
  // The same, or, of a shrunk block, the class of what was asked for; of a
  // sampled block of any route kSampledClass.
  SizeClass asked_class = 0;
  HeapId owner = 0;          // Tiny, Pool
  UnitIndex unit = kNoUnit;  // Span: the first
  std::size_t usable_bytes = 0;
  // The bytes that the program may use: usable_bytes; of a shrunk block those
  // of asked_class; or, where bounds are kept, what it asked for, and by which
  // kind of call.
  std::size_t size_bytes = 0;
  BlockKind kind = BlockKind::kMalloc;
  bool empty = false;  // of size 0, and inaccessible
  // It has no class, no owner and no unit; its route is that of its size.
  bool guarded = false;

  // The heap profile keeps a sample of it, which alone knows for which class a
  // slab's block is that was asked to be smaller.
  bool is_sampled() const { return asked_class == kSampledClass; }
  bool is_shrunk() const { return asked_class != size_class && !is_sampled(); }
};

// Whether a live block starts at `pointer`, and which. True as long as the user
// does not free it at the same time.
bool FindLiveBlock(Ace& ace, const void* pointer, LiveBlock& block);

// The place for a block that an address in a slab's unit falls into.
struct SlabPlace {
  unsigned size_class = kClassCount;  // kClassCount: the record is damaged
  std::uint32_t index = 0;  // behind the last block it is the capacity or more
  UnitIndex first = 0;      // of the slab
  Address start = 0;
  HeaderByte header = kNoBlock;  // behind the last block: kNoBlock
  HeaderByte live = kNoBlock;    // what a live block's header would be
};

// `record` is that of `unit`, which holds the address, and may be anything.
template <bool kTiny>
HAK_ALWAYS_INLINE SlabPlace SlabPlaceOf(const Zone& zone, Address address,
                                        UnitIndex unit, UnitRecord record) {
  constexpr unsigned kFirstClass = kTiny ? 0 : kTinyClassCount;
  constexpr unsigned kClasses =
      kTiny ? kTinyClassCount : kClassCount - kTinyClassCount;
  SlabPlace place;
  place.live = UnitLiveHeader(record);
  const unsigned size_class = HeaderCode(place.live) - 1U;
  if (size_class - kFirstClass >= kClasses) [[unlikely]]
    return place;
  const ClassLayout& layout = kClassLayouts[size_class];
  place.size_class = size_class;
  place.first =
      kTiny ? unit : SlabUnitOf(static_cast<SizeClass>(size_class), unit);
  // A slab is aligned to its length, a power of two.
  const Address slab_bytes = (kTiny ? 1U : layout.slab_units) * kUnitBytes;
  const Address offset_bytes = address & (slab_bytes - 1);
  place.index = BlockIndexAt(layout, static_cast<std::uint32_t>(offset_bytes));
  place.start =
      address - offset_bytes + std::size_t{place.index} * layout.block_bytes;
  place.header = zone.view()
                     .HeaderOf(reinterpret_cast<const void*>(place.start),
                               BoundsEntry<kTiny>::kGranuleShift)
                     .load(std::memory_order_relaxed);
  return place;
}

// The use of a slab's block, or its last one if it is not live, by the bounds
// table of `zone`, which has Tiny blocks or others.
inline BlockUse BoundsOf(const Zone& zone, bool tiny, const void* block) {
  const auto use = [&]<bool kTiny>() -> BlockUse {
    using Entry = BoundsEntry<kTiny>;
    const auto entry = Entry::Load(zone.view(), block);
    return {Entry::SizeOf(entry),
            static_cast<std::uint8_t>(Entry::KindOf(entry))};
  };
  return tiny ? use.template operator()<true>()
              : use.template operator()<false>();
}

// The descriptor of the live span that starts at `start`, which may be
// anything. False: none does.
HAK_ALWAYS_INLINE bool FindSpanAt(const Zone& coarse, Address start,
                                  const UnitDescriptor*& descriptor) {
  if (!coarse.Contains(start)) return false;
  const UnitIndex first = coarse.UnitOf(start);
  if (coarse.unit_record(first).load(std::memory_order_relaxed) !=
      kSpanRecord) {
    return false;
  }
  descriptor = &DescriptorOf(coarse, first);
  return true;
}

// The span or Huge block that starts at an address, which may be anything; live
// or claimed. For who owns the block, or holds ACE still.
struct LargeBlock {
  std::size_t bytes = 0;  // 0: none starts there
  std::size_t requested_bytes = 0;
};
LargeBlock LargeAt(Ace& ace, Address start);
// Where the large block around an address must start, if there is one; 0: there
// is none.
Address LargeStart(Ace& ace, Address address);

// The use of the span or Huge block that starts at `pointer`, which is live and
// the caller's: what the program asked for.
inline BlockUse& UseOfLarge(const Ace& ace, const void* pointer) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Zone& coarse = ace.region().coarse();
  return coarse.Contains(address)
             ? DescriptorOf(coarse, coarse.UnitOf(address)).use
             : ace.huge().UseOf(address);
}

// The header of a block, which need no longer be live.
HAK_ALWAYS_INLINE std::atomic<HeaderByte>& HeaderAt(const Ace& ace,
                                                    const void* block) {
  const auto address = reinterpret_cast<Address>(block);
  const ZoneView& coarse = ace.region().coarse().view();
  const ZoneView& fine = ace.region().fine().view();
  std::uint64_t granule = coarse.Granule(address, kCoarseGranuleShift);
  if (granule < coarse.limit_granules) return coarse.headers[granule];
  granule = fine.Granule(address, kFineGranuleShift);
  if (granule < fine.limit_granules) return fine.headers[granule];
  return *ace.huge().HeaderOf(address);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LOOKUP_LOOKUP_H_
