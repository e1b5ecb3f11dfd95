// Any pointer, given to free, sized free, realloc or malloc_usable_size:
// blocks, addresses inside and around them, stale and arbitrary ones, and
// blocks whose header byte or unit record is damaged. A model knows the truth:
// what is no live block must be reported, a pointer into a live block as that,
// and what is valid must be served. So must what crash reports say of the
// pointer, and what checked copies make of it. Guarded blocks have no header:
// the bytes beside them are damaged, and accesses fault; after each report they
// must be what they were.
//
// Header: 0 sampled guards, 1 how many blocks they may guard, 2 whether misuses
// are survived (HAKMEM_ON_MISUSE=log), and whether sizes are checked.
// Records: op % 16 is the operation of `Step`. A pointer is
// chosen by `a` among the live or stale ones, and b says how far from it; what
// it is given to is chosen by `who`.

#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/process/fault_hook.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/zone.h"
#include "fuzz/address_oracle.h"
#include "fuzz/fuzz_heap.h"
#include "fuzz/misuse_trap.h"
#include "fuzz/records.h"

namespace hakmem {
namespace {

constexpr std::size_t kMostStale = 64;
constexpr std::string_view kFatal = "hakmem: fatal: ";

// Small distances often, and some of any length.
std::size_t OffsetOf(std::uint32_t number) {
  const std::size_t rest = number >> 3;
  switch (number % 8) {
    case 0:
      return rest % 16;
    case 1:
    case 2:
      return rest % 256 * 16;
    case 3:
      return rest % 256 * 256;
    case 4:
      return rest % 64 * kUnitBytes;
    case 5:
      return rest % (4 * kMiB);
    case 6:
      return 0 - rest % 4096;
    default:
      return 0 - rest % (4 * kMiB);
  }
}

HeapOptions OptionsOf(const Records& input) {
  HeapOptions options;
  if (input.header(0) % 4 == 1) {
    options.guard_sample = 1 + input.header(0) / 4U;
    options.guard_slots = 1 + input.header(1) % 64U;
  }
  // Whatever operators libFuzzer brings.
  options.kinds_asked_for = true;
  return options;
}

template <const Config& kConfig>
class ValidationRun {
 public:
  explicit ValidationRun(const Records& input)
      : heap_(OptionsOf(input)), survives_(input.header(2) % 2 != 0) {
    SetOnMisuse(survives_ ? OnMisuse::kLog : OnMisuse::kAbort);
    SetSizesChecked(input.header(2) / 2 % 2 == 0);
  }
  void Step(const Record& record);
  void Finish() {
    heap_.Check();
    heap_.Finish();
    // And no others.
    HAK_CHECK_EQ(MisuseCount() - misuses_before_, caught_);
  }

 private:
  using Block = ModelHeap::Blocks::value_type;

  void Give(unsigned who, void* block) {
    const auto address = reinterpret_cast<Address>(block);
    if (stale_.size() == kMostStale) stale_.erase(stale_.begin());
    stale_.push_back(address);
    heap_.Free(who, block);
  }
  void Probe(const Record& record, Address address);
  std::string_view Use(const Record& record, void* pointer,
                       bool damaged = false);
  void CheckInterior(std::string_view report, const Block& block,
                     Address address) const;
  Address Arbitrary(const Record& record);
  void DamageHeader(const Record& record);
  void DamageRecord(const Record& record);
  void DamageCanary(const Record& record, void* block);
  void CauseFault(const Record& record, Address address);
  void WrongSize(const Record& record);
  void WrongKind(const Record& record);
  bool IsGuarded(const void* pointer) {
    return heap_.allocator().guards().Contains(pointer);
  }
  Zone* ZoneOf(Address address) {
    Region& region = heap_.allocator().ace().region();
    if (region.fine().Contains(address)) return &region.fine();
    if (region.coarse().Contains(address)) return &region.coarse();
    return nullptr;
  }
  // The report that ends a call. Of misuses that are survived only some are
  // written, and each is counted; damaged tables may end the process all the
  // same.
  template <typename F>
  std::string_view Catch(F call, bool damaged = false) {
    const std::uint64_t before = MisuseCount();
    const std::string_view report = trap_.Catch(call);
    const bool ends = !survives_ || (damaged && report.starts_with(kFatal));
    HAK_CHECK_EQ(MisuseCount() - before, ends ? 0U : 1U);
    caught_ += MisuseCount() - before;
    return report;
  }
  void CheckReport(std::string_view report, std::string_view beginning) const {
    HAK_CHECK(survives_ || report.starts_with(beginning));
  }
  // Nothing damaged or invalid may be acted upon, whatever it is given to.
  void MustReport(const Record& record, void* pointer) {
    CheckReport(Use(record, pointer, /*damaged=*/true), kFatal);
  }

  FuzzHeap<kConfig> heap_;
  AddressOracle<kConfig> oracle_{heap_.allocator(), heap_.model()};
  MisuseTrap trap_;
  const bool survives_;
  const std::uint64_t misuses_before_ = MisuseCount();
  std::uint64_t caught_ = 0;
  std::vector<Address> stale_;
};

template <const Config& kConfig>
std::string_view ValidationRun<kConfig>::Use(const Record& record,
                                             void* pointer, bool damaged) {
  auto& allocator = heap_.allocator();
  auto*& self = heap_.thread(record.who);
  return Catch(
      [&] {
        switch (record.who / 4 % 4) {
          case 0:
            allocator.Free(self, pointer);
            break;
          case 1:
            allocator.FreeSized(self, pointer, SizeOf(record.b), 1);
            break;
          case 2:
            allocator.Reallocate(self, pointer, SizeOf(record.b) % kMiB);
            break;
          default:
            allocator.UsableSize(self, pointer);
            break;
        }
      },
      damaged);
}

// "… (interior pointer: 16 bytes into the live block 0xS, class 64)".
template <const Config& kConfig>
void ValidationRun<kConfig>::CheckInterior(std::string_view report,
                                           const Block& block,
                                           Address address) const {
  constexpr std::string_view kWords = "(interior pointer: ";
  constexpr std::string_view kLive = " bytes into the live block 0x";
  const std::size_t at = report.find(kWords);
  HAK_CHECK(at != std::string_view::npos);
  report.remove_prefix(at + kWords.size());
  std::size_t offset = 0;
  const char* end = std::from_chars(report.begin(), report.end(), offset).ptr;
  report.remove_prefix(static_cast<std::size_t>(end - report.begin()));
  HAK_CHECK_EQ(offset, address - block.first);
  HAK_CHECK(report.starts_with(kLive));
  report.remove_prefix(kLive.size());
  Address start = 0;
  std::from_chars(report.begin(), report.end(), start, 16);
  HAK_CHECK_EQ(start, block.first);
}

template <const Config& kConfig>
void ValidationRun<kConfig>::Probe(const Record& record, Address address) {
  oracle_.Check(address);
  if (address == 0) return;
  auto* pointer = reinterpret_cast<void*>(address);
  if (heap_.model().blocks().contains(address)) {
    heap_.CheckUsable(record.who, pointer);
    return;
  }
  const std::string_view report = Use(record, pointer);
  CheckReport(report, kFatal);
  if (survives_) return;
  if (const Block* block = heap_.model().Around(address); block != nullptr) {
    CheckInterior(report, *block, address);
  }
  if (ZoneOf(address) == nullptr && address % 2 != 0) {
    // An odd address starts no block, not even a huge one that is gone.
    HAK_CHECK(report.find("double free") == std::string_view::npos);
  }
}

template <const Config& kConfig>
Address ValidationRun<kConfig>::Arbitrary(const Record& record) {
  static char in_program[64];
  const auto on_stack = reinterpret_cast<Address>(__builtin_frame_address(0));
  Region& region = heap_.allocator().ace().region();
  const Address near = OffsetOf(record.b);
  const Zone& zone = record.a / 16 % 2 == 0 ? region.fine() : region.coarse();
  switch (record.a % 8) {
    case 0:
      return on_stack + near % 64;
    case 1:
      return reinterpret_cast<Address>(in_program) + near % 64;
    case 2:
      return zone.view().base + near;
    case 3:
      return zone.FrameAddress(zone.frame_count()) + near;
    case 4:
      return reinterpret_cast<Address>(zone.view().headers) + near;
    case 5:
      return region.huge().begin + near;
    case 6:
      return region.heap_window(3).begin + near;
    default:
      return Address{record.b} << record.a % 37;
  }
}

// What a live block of the unit may bear.
template <const Config& kConfig>
bool MayBeLive(HeaderByte header, UnitRecord record) {
  return header == UnitLiveHeader(record) ||
         (kConfig.check_bounds ? IsSampledHeader(header, record)
                               : IsMarkedHeader(header, record));
}

// A header that is not what it was: whatever is done with the block is refused.
template <const Config& kConfig>
void ValidationRun<kConfig>::DamageHeader(const Record& record) {
  void* block = heap_.Pick(record.a);
  if (block == nullptr) return;
  if (IsGuarded(block) || (kConfig.check_bounds && record.who / 64 % 2 != 0)) {
    return DamageCanary(record, block);
  }
  const auto address = reinterpret_cast<Address>(block);
  Zone* zone = ZoneOf(address);
  if (zone == nullptr) return;
  std::atomic<HeaderByte>& header = zone->header(address);
  const HeaderByte sound = header.load(std::memory_order_relaxed);
  const auto damaged = static_cast<HeaderByte>(record.b >> 24);
  const UnitRecord record_of_unit =
      zone->unit_record(zone->UnitOf(address)).load(std::memory_order_relaxed);
  if (MayBeLive<kConfig>(damaged, record_of_unit)) return;
  header.store(damaged, std::memory_order_relaxed);
  oracle_.Ask(address);
  MustReport(record, block);
  HAK_CHECK_EQ(header.load(std::memory_order_relaxed), damaged);
  header.store(sound, std::memory_order_relaxed);
}

// The same with a unit's record. Its owner is left alone: another heap's id is
// not told from the true one before the block arrives there.
template <const Config& kConfig>
void ValidationRun<kConfig>::DamageRecord(const Record& record) {
  void* block = heap_.Pick(record.a);
  if (block == nullptr) return;
  const auto address = reinterpret_cast<Address>(block);
  if (IsGuarded(block)) return CauseFault(record, address + OffsetOf(record.b));
  Zone* zone = ZoneOf(address);
  if (zone == nullptr) return;
  std::atomic<UnitRecord>& unit_record =
      zone->unit_record(zone->UnitOf(address));
  const UnitRecord sound = unit_record.load(std::memory_order_relaxed);
  const auto live = static_cast<HeaderByte>(record.b >> 24);
  const UnitRecord damaged =
      record.b % 4 == 0 ? 0 : MakeUnitRecord(UnitOwner(sound), live);
  const HeaderByte header =
      zone->header(address).load(std::memory_order_relaxed);
  if (damaged == sound || MayBeLive<kConfig>(header, damaged)) return;
  unit_record.store(damaged, std::memory_order_relaxed);
  oracle_.Ask(address);
  MustReport(record, block);
  unit_record.store(sound, std::memory_order_relaxed);
}

// A byte beside a guarded block, on one of its own pages, or behind another,
// where its canary is.
template <const Config& kConfig>
void ValidationRun<kConfig>::DamageCanary(const Record& record, void* block) {
  const ModelHeap::Block facts = heap_.model().At(block);
  const std::size_t page_bytes = heap_.memory().PageBytes();
  const auto start = reinterpret_cast<Address>(block);
  const bool guarded = IsGuarded(block);
  const bool behind = !guarded || record.b % 2 != 0;
  const Address beside = behind ? start + facts.size : start - 1;
  const Address border = behind ? beside : start;
  if (facts.size == 0 || (guarded && border % page_bytes == 0)) return;
  auto& byte = *reinterpret_cast<volatile std::uint8_t*>(beside);
  const auto sound = byte;
  byte = static_cast<std::uint8_t>(sound ^ (1 + record.b / 2 % 255));
  auto& allocator = heap_.allocator();
  auto*& self = heap_.thread(record.who);
  unsigned how = record.who / 4 % (guarded ? 3 : 4);
  if (how == 2 && facts.kind != BlockKind::kMalloc) how = 0;
  const std::string_view report = Catch([&] {
    switch (how) {
      case 0:
        allocator.Free(self, block, facts.kind);
        break;
      case 1:
        allocator.FreeSized(self, block, facts.size, facts.alignment,
                            facts.kind);
        break;
      case 2:
        allocator.Reallocate(self, block, 1 + record.b / 512 % kMaxPoolBytes);
        break;
      default:
        (void)allocator.CheckHeap(self);
        break;
    }
  });
  CheckReport(report, behind ? "hakmem: fatal: overflow of "
                             : "hakmem: fatal: underflow of ");
  byte = sound;
  heap_.CheckUsable(record.who, block);
}

// What a handler of faults hears of an access near a guarded block.
template <const Config& kConfig>
void ValidationRun<kConfig>::CauseFault(const Record& record, Address address) {
  // The process ends of a fault in any case.
  if (survives_) return;
  hakmem::Fault fault;
  fault.signal = SIGSEGV;
  fault.has_address = true;
  fault.address = address;
  fault.access = static_cast<hakmem::Fault::Access>(record.who / 4 % 3);
  FaultVerdict verdict = FaultVerdict::kUnknown;
  const std::string_view report = trap_.Catch([&] {
    verdict = heap_.allocator().guards().ReportFault(fault, kConfig.name);
  });
  const bool guarded = IsGuarded(reinterpret_cast<const void*>(address));
  const bool in_live_block = heap_.model().Around(address) != nullptr;
  HAK_CHECK_EQ(verdict != FaultVerdict::kUnknown, guarded && !in_live_block);
  HAK_CHECK_EQ(report.empty(), verdict == FaultVerdict::kUnknown);
}

// A delete with a size, or an alignment, that this block cannot have.
template <const Config& kConfig>
void ValidationRun<kConfig>::WrongSize(const Record& record) {
  if (record.who / 4 % 2 != 0) return WrongKind(record);
  void* block = heap_.Pick(record.a);
  if (block == nullptr) return;
  const ModelHeap::Block& facts = heap_.model().At(block);
  const std::size_t given = SizeOf(record.b);
  const bool misaligned = record.who % 2 != 0;
  const std::size_t alignment =
      misaligned ? std::size_t{1} << 40 : facts.alignment;
  if (!misaligned && given < facts.usable + kUnitBytes &&
      given + kUnitBytes > facts.size) {
    return;
  }
  if (!misaligned && !AreSizesChecked()) {
    return heap_.FreeSizedAs(record.who, block, given);
  }
  const std::string_view report = Catch([&] {
    heap_.allocator().FreeSized(heap_.thread(record.who), block,
                                misaligned ? facts.size : given, alignment,
                                facts.kind);
  });
  CheckReport(report, kFatal);
}

// A call of another family than the block's.
template <const Config& kConfig>
void ValidationRun<kConfig>::WrongKind(const Record& record) {
  if constexpr (!kConfig.check_kinds) return;
  void* block = heap_.Pick(record.a);
  // A block of no bytes has no kind.
  if (block == nullptr || heap_.model().At(block).size == 0) return;
  const ModelHeap::Block& facts = heap_.model().At(block);
  constexpr unsigned kKinds = 5;
  const auto given = static_cast<BlockKind>(
      (static_cast<unsigned>(facts.kind) + 1 + record.b % (kKinds - 1)) %
      kKinds);
  const std::string_view report = Catch([&] {
    auto& allocator = heap_.allocator();
    auto*& self = heap_.thread(record.who);
    if (record.who / 8 % 2 != 0) {
      allocator.FreeSized(self, block, facts.size, facts.alignment, given);
    } else if (record.who / 16 % 2 != 0 && facts.kind != BlockKind::kMalloc) {
      allocator.Reallocate(self, block, 1 + record.b / 4 % kMaxPoolBytes);
    } else {
      allocator.Free(self, block, given);
    }
  });
  CheckReport(report, kFatal);
  heap_.CheckUsable(record.who, block);
}

template <const Config& kConfig>
void ValidationRun<kConfig>::Step(const Record& record) {
  void* block = heap_.Pick(record.a);
  switch (record.op % 16) {
    case 0:
    case 1:
    case 2:
      if (heap_.full()) break;
      heap_.AllocateTyped(record.who, TokenOf(record.a), kMinAlignmentBytes,
                          SizeOf(record.b), KindOf(record.a / 16U));
      break;
    case 3:
      if (!heap_.full()) {
        heap_.AllocateAligned(record.who, std::size_t{1} << record.a % 22,
                              SizeOf(record.b));
      }
      break;
    case 4:
    case 5:
      if (block != nullptr) Give(record.who, block);
      break;
    case 6:
      if (block != nullptr && !heap_.full()) {
        heap_.Reallocate(record.who, block, SizeOf(record.b));
      }
      break;
    case 7:
      heap_.EndThread(record.who, /*replaced=*/true);
      break;
    case 8:
      heap_.allocator().upkeep().Purge(heap_.thread(record.who));
      break;
    case 9:
    case 10:
      if (block == nullptr) break;
      Probe(record, reinterpret_cast<Address>(block) + OffsetOf(record.b));
      break;
    case 11:
      if (stale_.empty()) break;
      Probe(record, stale_[record.a % stale_.size()] +
                        (record.b % 2 == 0 ? 0 : OffsetOf(record.b / 2)));
      break;
    case 12:
      Probe(record, Arbitrary(record));
      break;
    case 13:
      DamageHeader(record);
      break;
    case 14:
      DamageRecord(record);
      break;
    default:
      WrongSize(record);
      break;
  }
}

template <const Config& kConfig>
void Run(Records input) {
  ValidationRun<kConfig> run(input);
  Record record;
  while (input.Next(record)) run.Step(record);
  run.Finish();
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Run<hakmem::HAKMEM_FUZZ_VARIANT>(hakmem::Records(data, size));
  return 0;
}
