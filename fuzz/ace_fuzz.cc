// ACE with any sequence of grants and releases, on a kernel that refuses any
// call: grants never overlap, what is said to be zero is zero, what is live
// keeps its content, a refusal says why, and nothing is lost.
//
// Header: 0 heap limit in MiB (0: none), 1 decay, 2 huge pages and prefaulting,
// 3 whether moves lose their target or their source, which variant of ACE, and
// what the kernel can do.
// Records: op % 16 is the operation of `Step`.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "allocator/ace/ace.h"
#include "allocator/ace/range_pool.h"
#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/partitions.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "allocator/superslab/zone.h"
#include "fuzz/records.h"

namespace hakmem {
namespace {

constexpr std::size_t kMostLiveBytes = 64 * kMiB;
constexpr std::size_t kPageBytes = 4096;

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};
constexpr Config kClosed = {.name = "closed",
                            .delay_reuse = true,
                            .separate_classes = true,
                            .guard_pages = true,
                            .closed_until_granted = true};
constexpr Config kTyped = [] {
  Config config = kClosed;
  config.separate_types = true;
  return config;
}();
constexpr const Config* kConfigs[] = {&kRelease, &kRelease, &kSeparate,
                                      &kClosed,  &kTyped,   &kTyped,
                                      &kTyped,   &kTyped};

// By zone: where classes are separate, slabs are of these.
constexpr std::size_t kBlockBytes[2][2] = {{4096, 60'000}, {64, 900}};

enum class Kind : std::uint8_t { kFineSlab, kCoarseSlab, kSpan, kHuge };

struct Grant {
  Kind kind;
  UnitIndex first;  // not of Huge blocks
  std::uint32_t units;
  std::size_t bytes;
  std::size_t filled;  // how much of it has content: multiples of a page
  std::uint64_t seed;
  SizeClass size_class = kClassCount;
};
using Grants = std::map<Address, Grant>;

class AceRun {
 public:
  explicit AceRun(const Records& input)
      : config_(*kConfigs[input.header(3) / 2 % 8]) {
    HeapOptions options;
    if (input.header(0) != 0) {
      options.heap_limit_bytes = input.header(0) * kMiB;
    }
    options.decay_ms = input.header(1) * 4U;
    options.huge_pages = input.header(2) % 3U;
    options.prefault = input.header(2) / 4 % 2U;
    if (input.header(3) % 2 != 0) memory_.LoseTargetOfRefusedMoves();
    if (input.header(3) / 16 % 2 != 0) memory_.UseGuardRegions();
    if (input.header(3) / 32 % 2 != 0) memory_.HideResident();
    if (input.header(3) / 64 % 2 != 0) memory_.LoseSourceOfMoves();
    ace_.Start(options, config_);
  }
  void Step(const Record& record);
  void Finish();

 private:
  Address AddressOf(Kind kind, UnitIndex first) {
    const Region& region = ace_.region();
    return (kind == Kind::kFineSlab ? region.fine() : region.coarse())
        .UnitAddress(first);
  }
  void Add(Address address, Grant grant, bool known_zero);
  void TakeUnits(const Ace::Grant& granted, Kind kind, Partition partition,
                 SizeClass size_class = kClassCount);
  Partition PartitionFor(unsigned number) const {
    return config_.separate_types
               ? static_cast<Partition>(number % kMostPartitions)
               : Partition{0};
  }
  void CheckRefusal(const Refusal& refusal) const {
    HAK_CHECK(refusal.reason != FailureReason::kNone);
    HAK_CHECK(refusal.detail != FailureDetail::kNone);
  }
  void CheckContent(Grants::const_iterator at, Address address) const {
    HAK_CHECK(HasContent(address, at->second.filled, at->second.seed));
  }
  Grants::iterator Pick(std::size_t number) {
    auto at = grants_.begin();
    std::advance(at, number % grants_.size());
    return at;
  }
  Grants::iterator Forget(Grants::iterator at) {
    live_bytes_ -= at->second.bytes;
    return grants_.erase(at);
  }
  void TakeSlab(const Record& record);
  void TakeHuge(const Record& record);
  void Release(Grants::iterator at);
  void Extend(const Record& record);
  void Move(const Record& record);
  void ResizeHuge(const Record& record);
  void Disturb(const Record& record);

  std::uint32_t LengthOf(std::uint32_t units) const {
    return config_.separate_classes ? RangeUnits(units) : units;
  }

  const Config& config_;
  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  WholeAce ace_{memory_, &ranges_};
  Grants grants_;
  std::size_t live_bytes_ = 0;
  std::uint64_t next_seed_ = 0;
};

void AceRun::Add(Address address, Grant grant, bool known_zero) {
  // One call for two faults of each page, where the kernel knows it (5.14).
  (void)madvise(reinterpret_cast<void*>(address), grant.filled,
                MADV_POPULATE_WRITE);
  if (known_zero) HAK_CHECK(IsBlank(address, grant.filled));
  const auto [at, is_new] = grants_.emplace(address, grant);
  HAK_CHECK(is_new);
  if (at != grants_.begin()) {
    const auto before = std::prev(at);
    HAK_CHECK_LE(before->first + before->second.bytes, address);
  }
  if (std::next(at) != grants_.end()) {
    HAK_CHECK_LE(address + grant.bytes, std::next(at)->first);
  }
  live_bytes_ += grant.bytes;
  FillContent(address, grant.filled, grant.seed);
}

void AceRun::TakeUnits(const Ace::Grant& granted, Kind kind,
                       Partition partition, SizeClass size_class) {
  if (granted.first == kNoUnit) return CheckRefusal(granted.refusal);
  const Region& region = ace_.region();
  const Zone& zone = kind == Kind::kFineSlab ? region.fine() : region.coarse();
  for (const UnitIndex unit :
       {granted.first, granted.first + granted.units - 1}) {
    HAK_CHECK_EQ(zone.super_slab(FrameOfUnit(unit)).partition, partition);
  }
  const std::size_t bytes = granted.units * kUnitBytes - granted.guard_bytes;
  Add(AddressOf(kind, granted.first),
      {kind, granted.first, granted.units, bytes, bytes, ++next_seed_,
       size_class},
      granted.known_zero);
}

void AceRun::TakeSlab(const Record& record) {
  const bool fine = record.a % 2 == 0;
  const std::uint32_t longer = record.a / 2 % 2;
  const Kind kind = fine ? Kind::kFineSlab : Kind::kCoarseSlab;
  const Partition partition = PartitionFor(record.a / 4U);
  if (config_.separate_classes) {
    const SizeClass size_class = ClassOf(kBlockBytes[fine][longer]);
    TakeUnits(
        ace_.GrantSlab(IsTiny(size_class), SlabRange(size_class, partition)),
        kind, partition, size_class);
  } else {
    const std::uint32_t units = longer == 0 ? 1 : 4;
    TakeUnits(ace_.GrantSlab(fine, {units, units}), kind, partition);
  }
}

void AceRun::TakeHuge(const Record& record) {
  const std::size_t bytes = kMaxSpanBytes + (1 + record.b % 2000) * kPageBytes;
  const std::size_t alignment = kSuperSlabBytes << record.b / 2000 % 9;
  const BlockGrant granted = ace_.GrantHuge(bytes, alignment);
  if (granted.address == 0) return CheckRefusal(granted.refusal);
  HAK_CHECK_EQ(granted.address % alignment, 0U);
  HAK_CHECK_EQ(ace_.huge().BytesOf(granted.address), bytes);
  Add(granted.address,
      {Kind::kHuge, kNoUnit, 0, bytes, 8 * kPageBytes, ++next_seed_},
      /*known_zero=*/true);
}

void AceRun::Release(Grants::iterator at) {
  const Grant grant = at->second;
  const Address address = at->first;
  CheckContent(at, address);
  Forget(at);
  switch (grant.kind) {
    case Kind::kFineSlab:
    case Kind::kCoarseSlab:
      if (grant.size_class != kClassCount) {
        ace_.ReleaseSlab(IsTiny(grant.size_class), SlabRange(grant.size_class),
                         grant.first);
      } else {
        ace_.ReleaseSlab(grant.kind == Kind::kFineSlab, {grant.units},
                         grant.first);
      }
      break;
    case Kind::kSpan:
      ace_.ReleaseSpan(grant.first, grant.units);
      break;
    case Kind::kHuge:
      HAK_CHECK(ReleaseLive(ace_, address));
      HAK_CHECK(!ReleaseLive(ace_, address));
      HAK_CHECK_EQ(ace_.huge().BytesOf(address), 0U);
      break;
  }
}

// In place, as realloc does: longer, or by giving the end back.
void AceRun::Extend(const Record& record) {
  const auto at = Pick(record.a);
  const Grant old = at->second;
  const Address address = at->first;
  if (old.kind != Kind::kSpan || config_.separate_classes) return;
  const std::uint32_t units = 1 + record.b % 60;
  if (units < old.units) {
    ace_.ReleaseSpan(old.first + units, old.units - units);
  } else if (units == old.units ||
             !ace_.ExtendSpan(old.first, old.units, units)) {
    return;
  }
  Grant grant = old;
  grant.units = units;
  grant.bytes = units * kUnitBytes;
  grant.filled = grant.bytes;
  HAK_CHECK(HasContent(address, std::min(old.filled, grant.filled), old.seed));
  Forget(at);
  Add(address, grant, /*known_zero=*/false);
}

// A longer span takes the pages of a shorter one.
void AceRun::Move(const Record& record) {
  const auto at = Pick(record.a);
  const Grant old = at->second;
  if (old.kind != Kind::kSpan) return;
  const Zone& zone = ace_.region().coarse();
  const Ace::Grant granted =
      ace_.GrantSpan(LengthOf(old.units + 1 + record.b % 8), kUnitBytes,
                     zone.super_slab(FrameOfUnit(old.first)).partition);
  if (granted.first == kNoUnit) return CheckRefusal(granted.refusal);
  const std::uint32_t units = granted.units;
  const VmStatus status = ace_.MoveSpanTo(
      old.first, ace_.region().coarse().UnitAddress(granted.first), old.bytes);
  if (status.target_lost) return;
  if (!status.ok()) {
    CheckContent(at, at->first);
    ace_.ReleaseSpan(granted.first, units);
    return;
  }
  const Address to = AddressOf(Kind::kSpan, granted.first);
  CheckContent(at, to);
  Forget(at);
  if (!status.source_lost) {
    ace_.ReleaseSpan(old.first, old.units, /*dirty=*/false);
  }
  const std::size_t bytes = units * kUnitBytes - granted.guard_bytes;
  Add(to, {Kind::kSpan, granted.first, units, bytes, bytes, ++next_seed_},
      /*known_zero=*/false);
}

void AceRun::ResizeHuge(const Record& record) {
  const auto at = Pick(record.a);
  const Grant old = at->second;
  if (old.kind != Kind::kHuge) return;
  const std::size_t bytes = kMaxSpanBytes + (1 + record.b % 4000) * kPageBytes;
  const BlockGrant granted = ResizeLive(ace_, at->first, bytes);
  if (granted.address == 0) {
    CheckContent(at, at->first);
    return CheckRefusal(granted.refusal);
  }
  CheckContent(at, granted.address);
  Forget(at);
  Grant grant = old;
  grant.bytes = bytes;
  Add(granted.address, grant, /*known_zero=*/false);
}

void AceRun::Disturb(const Record& record) {
  constexpr int kErrors[] = {ENOMEM, EAGAIN, EPERM, EEXIST};
  switch (record.a % 4) {
    case 0:
      memory_.RefuseNothing();
      memory_.LimitBytes(~std::size_t{0});
      memory_.LimitMappings(~std::size_t{0});
      break;
    case 1:
      memory_.LimitMappings(record.b % 32);
      break;
    default: {
      const auto kind = static_cast<VmCall>(record.b / 64 % 6);
      // Only mapping finds an address taken.
      const int error = kErrors[record.b / 16 % (kind == VmCall::kMap ? 4 : 3)];
      memory_.RefuseCall(1 + record.b % 16, error,
                         record.b / 512 % 4 == 0
                             ? FakeVirtualMemory::Refuse::kFromThenOn
                             : FakeVirtualMemory::Refuse::kOnce,
                         kind);
      break;
    }
  }
}

void AceRun::Step(const Record& record) {
  const bool full = live_bytes_ > kMostLiveBytes;
  const unsigned op = record.op % 16;
  if (full && op < 6) return;
  if (grants_.empty() && op >= 6 && op < 12) return;
  switch (op) {
    case 0:
    case 1:
    case 2:
      TakeSlab(record);
      break;
    case 3:
    case 4: {
      const std::uint32_t units =
          LengthOf(1 + record.b % (record.a % 4 == 0 ? 150 : 20));
      const Partition partition = PartitionFor(record.who);
      TakeUnits(
          ace_.GrantSpan(units, kUnitBytes << record.a / 4 % 8, partition),
          Kind::kSpan, partition);
      break;
    }
    case 5:
      TakeHuge(record);
      break;
    case 6:
    case 7:
    case 8:
      Release(Pick(record.a));
      break;
    case 9:
      Extend(record);
      break;
    case 10:
      Move(record);
      break;
    case 11:
      ResizeHuge(record);
      break;
    case 12:
      memory_.AdvanceMs(record.a);
      ace_.TrimIfDue();
      break;
    case 13:
      record.a % 2 == 0 ? ace_.PurgeAll() : ace_.UnmapCaches();
      break;
    case 14:
      ace_.ForgetPeak();
      break;
    default:
      Disturb(record);
      break;
  }
  ace_.CheckInvariants();
}

void AceRun::Finish() {
  while (!grants_.empty()) Release(grants_.begin());
  memory_.RefuseNothing();
  ace_.PurgeAll();
  ace_.CheckInvariants();
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Records input(data, size);
  hakmem::AceRun run(input);
  hakmem::Record record;
  while (input.Next(record)) run.Step(record);
  run.Finish();
  return 0;
}
