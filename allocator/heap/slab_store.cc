#include "allocator/heap/slab_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "allocator/ace/range_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/probe.h"
#include "allocator/base/relaxed.h"

namespace hakmem {
namespace {

HeaderByte FreeHeader(SizeClass size_class) {
  return MakeHeader(BlockState::kFree, size_class + 1U);
}
HeaderByte LiveHeader(SizeClass size_class) {
  return MakeHeader(BlockState::kLive, size_class + 1U);
}

}  // namespace

Zone& SlabStore::ZoneOf(SizeClass size_class) const {
  return IsTiny(size_class) ? ace_->region().fine() : ace_->region().coarse();
}

Slab& SlabStore::SlabAt(SizeClass size_class, UnitIndex unit) const {
  return DescriptorOf(ZoneOf(size_class), unit).slab;
}

UnitRecord SlabStore::RecordOf(SizeClass size_class) const {
  return MakeUnitRecord(heap_, LiveHeader(size_class));
}

unsigned SlabStore::BucketOf(const Slab& slab) {
  // available * kShares / capacity, without a division.
  const std::uint32_t scaled = slab.available() * kShares;
  const std::uint32_t capacity = slab.capacity();
  unsigned bucket = 0;
  for (std::uint32_t share = 1; share <= kShares; ++share) {
    bucket += static_cast<unsigned>(scaled >= share * capacity);
  }
  return bucket;
}

void SlabStore::List(Slab& slab, unsigned bucket) {
  const SizeClass size_class = slab.size_class();
  const bool had_any = (non_empty_[size_class] >> bucket & 1) != 0;
  UnitIndex& head = lists_[size_class][bucket];
  slab.bucket = bucket & 0xf;
  slab.previous = kNoUnit;
  slab.next = had_any ? head : kNoUnit;
  if (had_any) SlabAt(size_class, head).previous = slab.first_unit();
  head = slab.first_unit();
  non_empty_[size_class] =
      static_cast<std::uint8_t>(non_empty_[size_class] | 1U << bucket);
}

void SlabStore::Unlist(Slab& slab) {
  if (slab.bucket == kNotListed) return;
  const SizeClass size_class = slab.size_class();
  if (slab.next != kNoUnit) {
    SlabAt(size_class, slab.next).previous = slab.previous;
  }
  if (slab.previous != kNoUnit) {
    SlabAt(size_class, slab.previous).next = slab.next;
  } else if (slab.next != kNoUnit) {
    lists_[size_class][slab.bucket] = slab.next;
  } else {
    non_empty_[size_class] = static_cast<std::uint8_t>(non_empty_[size_class] &
                                                       ~(1U << slab.bucket));
  }
  slab.bucket = kNotListed;
}

void SlabStore::Refile(Slab& slab) {
  slab.looks = 0;
  if (slab.available() == 0) {
    Unlist(slab);
    return;
  }
  const unsigned bucket = BucketOf(slab);
  if (slab.bucket == bucket) return;
  Unlist(slab);
  List(slab, bucket);
}

Slab* SlabStore::Fullest(SizeClass size_class) {
  const unsigned lists = non_empty_[size_class];
  if (lists == 0) return nullptr;
  return &SlabAt(size_class, lists_[size_class][std::countr_zero(lists)]);
}

void SlabStore::ClearHeaders(const Zone& zone, UnitIndex unit) {
  std::uint32_t& extent = DescriptorOf(zone, unit).header_extent;
  std::memset(zone.UnitHeaders(unit), 0, extent);
  extent = 0;
}

Slab* SlabStore::GrantNew(SizeClass size_class, Refusal& refusal) {
  const std::uint32_t units = kClassLayouts[size_class].slab_units;
  const Ace::Grant grant =
      ace_->GrantSlab(IsTiny(size_class), SlabRange(size_class, partition_));
  refusal = grant.refusal;
  if (grant.first == kNoUnit) return nullptr;
  const Zone& zone = ZoneOf(size_class);
  UnitDescriptor& descriptor = DescriptorOf(zone, grant.first);
  // Before anything of it is read: so a new page has one fault, not two.
  descriptor.span_units = 0;
  for (UnitIndex unit = grant.first; unit < grant.first + units; ++unit) {
    ClearHeaders(zone, unit);
    zone.unit_record(unit).store(RecordOf(size_class),
                                 std::memory_order_relaxed);
  }
  descriptor.slab.Start(size_class, grant.first, grant.guard_bytes);
  descriptor.slab.bucket = kNotListed;
  ++slabs_granted_;
  HAK_PROBE2(slab_create, zone.UnitAddress(grant.first),
             ClassBytes(size_class));
  return &descriptor.slab;
}

void SlabStore::Release(Slab& slab) {
  Unlist(slab);
  const SizeClass size_class = slab.size_class();
  const Zone& zone = ZoneOf(size_class);
  const UnitIndex first = slab.first_unit();
  const std::uint32_t units = kClassLayouts[size_class].slab_units;
  // Headers that were written: those of blocks before the bump index.
  std::size_t used = DivideRoundUp(slab.bump() * ClassBytes(size_class),
                                   std::size_t{1} << zone.granule_shift());
  for (UnitIndex unit = first; unit < first + units; ++unit) {
    zone.unit_record(unit).store(0, std::memory_order_relaxed);
    const std::size_t here = std::min(used, zone.UnitHeaderBytes());
    DescriptorOf(zone, unit).header_extent = static_cast<std::uint32_t>(here);
    used -= here;
  }
  ace_->ReleaseSlab(IsTiny(size_class), SlabRange(size_class, partition_),
                    first);
}

std::uint32_t SlabStore::Take(SizeClass size_class, void** blocks,
                              std::uint32_t count, Refusal& refusal) {
  Slab* slab = Fullest(size_class);
  if (slab != nullptr) {
    AddByOwner(slab->empty() ? empty_takes_ : partial_takes_, 1);
  } else {
    slab = GrantNew(size_class, refusal);
    if (slab == nullptr) return 0;
  }
  const std::uint32_t used_before = slab->bump();
  const Zone& zone = ZoneOf(size_class);
  const Address base = zone.UnitAddress(slab->first_unit());
  const std::uint32_t taken = slab->Take(base, blocks, count);
  // The blocks that were never handed out come first.
  const std::uint32_t fresh = slab->bump() - used_before;
  for (std::uint32_t i = 0; i < fresh; ++i) {
    zone.header(reinterpret_cast<Address>(blocks[i]))
        .store(FreeHeader(size_class), std::memory_order_relaxed);
  }
  Refile(*slab);
  HAK_PROBE2(refill, ClassBytes(size_class), taken);
  return taken;
}

SizeClass SlabStore::LargerClass(SizeClass size_class) const {
  const std::size_t bytes = ClassBytes(size_class);
  for (SizeClass at = size_class; ++at < kTinyClassCount;) {
    const bool aligned = ClassBytes(at) % (bytes & (0 - bytes)) == 0;
    if (aligned && HasBlocks(at)) return at;
  }
  return size_class;
}

// An empty slab goes back to ACE, which keeps it for whoever asks next. One
// Tiny slab that is all a class has to give stays: giving it back and taking
// it again would cost more than its 64 KiB.
void SlabStore::AfterPut(Slab& slab) {
  Refile(slab);
  if (!slab.empty()) return;
  const bool only_one = slab.next == kNoUnit && slab.previous == kNoUnit &&
                        std::has_single_bit(non_empty_[slab.size_class()]);
  if (IsTiny(slab.size_class()) && only_one) return;
  Release(slab);
}

std::uint32_t SlabStore::Put(SizeClass size_class, void* const* blocks,
                             std::uint32_t count) {
  const Zone& zone = ZoneOf(size_class);
  bool sound = true;
  std::uint32_t done = 0;
  while (done < count && sound) {
    const UnitIndex unit = SlabUnitOf(
        size_class, zone.UnitOf(reinterpret_cast<Address>(blocks[done])));
    // A slab that went back had all its blocks, and this one among them.
    if (zone.unit_record(unit).load(std::memory_order_relaxed) !=
        RecordOf(size_class)) {
      break;
    }
    Slab& slab = SlabAt(size_class, unit);
    done +=
        slab.Put(zone.UnitAddress(unit), blocks + done, count - done, sound);
    AfterPut(slab);
  }
  return done;
}

void SlabStore::ReleaseEmpty() {
  for (unsigned i = 0; i < kClassCount; ++i) {
    ReleaseEmpty(static_cast<SizeClass>(i));
  }
}

void SlabStore::CheckSlab(SizeClass size_class, unsigned bucket,
                          UnitIndex unit) const {
  const Zone& zone = ZoneOf(size_class);
  const Slab& slab = SlabAt(size_class, unit);
  slab.CheckInvariants();
  HAK_CHECK_EQ(slab.size_class(), size_class);
  HAK_CHECK_GT(slab.available(), 0U);    // B1
  HAK_CHECK_EQ(BucketOf(slab), bucket);  // B1
  HAK_CHECK_EQ(slab.bucket, bucket);     // B1
  HAK_CHECK_EQ(zone.unit_record(unit).load(std::memory_order_relaxed),
               RecordOf(size_class));  // B2
  for (std::uint32_t index = 0; index < slab.bump(); ++index) {
    if (!slab.IsFree(index)) continue;
    const Address block =
        zone.UnitAddress(unit) + index * ClassBytes(size_class);
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 FreeHeader(size_class));  // B3
  }
}

void SlabStore::CheckRecent(SizeClass size_class) const {
  for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
    if ((non_empty_[size_class] >> bucket & 1) == 0) continue;
    CheckSlab(size_class, bucket, lists_[size_class][bucket]);
  }
}

void SlabStore::CheckInvariants() const {
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
      if ((non_empty_[i] >> bucket & 1) == 0) continue;
      for (UnitIndex unit = lists_[i][bucket]; unit != kNoUnit;
           unit = SlabAt(size_class, unit).next) {
        CheckSlab(size_class, bucket, unit);
      }
    }
  }
}

}  // namespace hakmem
