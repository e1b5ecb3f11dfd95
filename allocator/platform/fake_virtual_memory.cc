#include "allocator/platform/fake_virtual_memory.h"

#include <cerrno>
#include <functional>
#include <utility>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {

namespace {

using Guard = std::lock_guard<std::mutex>;

// How many mappings the kernel has for these: each end of a protected range
// inside a mapped one makes one more.
std::size_t CountMappings(const FakeRangeSet& mapped,
                          const FakeRangeSet& protection) {
  std::size_t count = mapped.count();
  for (const auto& [begin, end] : protection.ranges()) {
    const auto around = --mapped.ranges().upper_bound(begin);
    count += static_cast<std::size_t>(around->first != begin) +
             static_cast<std::size_t>(around->second != end);
  }
  return count;
}

}  // namespace

FakeVirtualMemory::~FakeVirtualMemory() {
  for (const auto& [begin, end] : mapped_.ranges()) {
    HAK_CHECK(linux_.Unmap(begin, end - begin).ok());
  }
}

VmStatus FakeVirtualMemory::MapAt(Address address, std::size_t bytes) {
  return MapNew(address, bytes, /*accessible=*/true, kNoLimit);
}

VmStatus FakeVirtualMemory::MapBlock(Address address, std::size_t bytes) {
  return MapNew(address, bytes, /*accessible=*/true, block_limit_);
}

VmStatus FakeVirtualMemory::Reserve(Address address, std::size_t bytes) {
  return MapNew(address, bytes, /*accessible=*/false, kNoLimit);
}

VmStatus FakeVirtualMemory::MapNew(Address address, std::size_t bytes,
                                   bool accessible, std::size_t most_bytes) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  VmStatus refused = {.call = VmCall::kMap, .bytes = bytes};
  refused.error_number = CountCall(VmCall::kMap);
  if (!refused.ok()) return refused;
  if (mapped_.ContainsAny(address, address + bytes)) {
    refused.error_number = EEXIST;
    return refused;
  }
  const auto change = [=](FakeRangeSet& mapped, FakeRangeSet& protection) {
    mapped.Add(address, address + bytes);
    if (!accessible) protection.Add(address, address + bytes);
  };
  if (bytes > most_bytes || LimitsRefuse(change)) {
    ++refused_;
    refused.error_number = ENOMEM;
    return refused;
  }
  const VmStatus status = accessible ? linux_.MapAt(address, bytes)
                                     : linux_.Reserve(address, bytes);
  if (status.ok()) change(mapped_, protected_);
  return status;
}

VmStatus FakeVirtualMemory::Do(VmCall kind, Address address, std::size_t bytes,
                               KernelCall call, const Change& change) {
  CheckRange(address, bytes);
  HAK_CHECK(mapped_.ContainsAll(address, address + bytes));
  if (const int error = CountCall(kind)) return {.error_number = error};
  if (LimitsRefuse(change)) {
    ++refused_;
    return {.error_number = ENOMEM};
  }
  const VmStatus status = (linux_.*call)(address, bytes);
  if (status.ok()) change(mapped_, protected_);
  return status;
}

VmStatus FakeVirtualMemory::Protect(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  return Do(VmCall::kProtect, address, bytes, &LinuxVirtualMemory::Protect,
            [=](FakeRangeSet&, FakeRangeSet& protection) {
              protection.Add(address, address + bytes);
            });
}

VmStatus FakeVirtualMemory::Unprotect(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  return Do(VmCall::kProtect, address, bytes, &LinuxVirtualMemory::Unprotect,
            [=](FakeRangeSet&, FakeRangeSet& protection) {
              protection.Remove(address, address + bytes);
            });
}

VmStatus FakeVirtualMemory::FindResident(Address address, std::size_t bytes,
                                         unsigned char* resident) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  // What a move has lost is inside what is mapped, and refused by the kernel.
  HAK_CHECK(lost_ != 0 || mapped_.ContainsAll(address, address + bytes));
  ++resident_looks_;
  if (hides_resident_) return {.error_number = ENOSYS};
  return linux_.FindResident(address, bytes, resident);
}

std::size_t FakeVirtualMemory::MaxMappings() {
  const Guard guard(mutex_);
  return max_mappings_;
}

bool FakeVirtualMemory::IsTaken(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  ++looks_;
  return mapped_.ContainsAny(address, address + bytes);
}

VmStatus FakeVirtualMemory::Unmap(Address address, std::size_t bytes) {
  Announce(VmCall::kUnmap, address, bytes);
  const Guard guard(mutex_);
  const VmStatus status =
      Do(VmCall::kUnmap, address, bytes, &LinuxVirtualMemory::Unmap,
         [=](FakeRangeSet& mapped, FakeRangeSet& protection) {
           mapped.Remove(address, address + bytes);
           protection.Remove(address, address + bytes);
         });
  if (status.ok()) {
    purged_.Remove(address, address + bytes);
    huge_.Remove(address, address + bytes);
    guarded_.Remove(address, address + bytes);
  }
  return status;
}

VmStatus FakeVirtualMemory::Purge(Address address, std::size_t bytes) {
  Announce(VmCall::kPurge, address, bytes);
  const Guard guard(mutex_);
  const VmStatus status = Do(VmCall::kPurge, address, bytes,
                             &LinuxVirtualMemory::Purge, kChangesNothing);
  if (status.ok()) purged_.Add(address, address + bytes);
  return status;
}

// The kernel is not asked: what it does with a wish is its own business.
void FakeVirtualMemory::AskForHugePages(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  const bool mapped = mapped_.ContainsAll(address, address + bytes);
  HAK_CHECK(lost_ != 0 || mapped);
  if (mapped) huge_.Add(address, address + bytes);
}

void FakeVirtualMemory::DeclineHugePages(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  HAK_CHECK(lost_ != 0 || mapped_.ContainsAll(address, address + bytes));
  huge_.Remove(address, address + bytes);
}

void FakeVirtualMemory::Populate(Address address, std::size_t bytes) {
  const Guard guard(mutex_);
  CheckRange(address, bytes);
  HAK_CHECK(mapped_.ContainsAll(address, address + bytes));
  populated_.Add(address, address + bytes);
}

VmStatus FakeVirtualMemory::Move(Address from, Address to, std::size_t bytes,
                                 bool keep_source) {
  Announce(VmCall::kMove, from, bytes);
  const Guard guard(mutex_);
  CheckRange(from, bytes);
  CheckRange(to, bytes);
  HAK_CHECK(from + bytes <= to || to + bytes <= from);
  HAK_CHECK(mapped_.ContainsAll(from, from + bytes));
  HAK_CHECK(!protected_.ContainsAny(from, from + bytes));
  HAK_CHECK(!protected_.ContainsAny(to, to + bytes));
  const int error = CountCall(VmCall::kMove);
  if (error != 0) return RefuseMove(to, bytes, error);
  const auto change = [=](FakeRangeSet& mapped, FakeRangeSet&) {
    mapped.Add(to, to + bytes);
    if (!keep_source) mapped.Remove(from, from + bytes);
  };
  if (LimitsRefuse(change)) {
    ++refused_;
    return RefuseMove(to, bytes, ENOMEM);
  }
  const bool keep = keep_source && !lose_source_;
  VmStatus status = linux_.Move(from, to, bytes, keep);
  status.source_lost |= status.ok() && keep != keep_source;
  purged_.Remove(to, to + bytes);
  huge_.Remove(to, to + bytes);
  if (!status.ok()) {
    mapped_.Add(to, to + bytes);
    if (status.target_lost) {
      mapped_.Remove(to, to + bytes);
      ++lost_;
    }
    return status;
  }
  change(mapped_, protected_);
  if (status.source_lost) {
    mapped_.Remove(from, from + bytes);
    ++lost_;
  }
  purged_.Remove(from, from + bytes);
  if (huge_.ContainsAll(from, from + bytes)) huge_.Add(to, to + bytes);
  huge_.Remove(from, from + bytes);
  return status;
}

VmStatus FakeVirtualMemory::RefuseMove(Address to, std::size_t bytes,
                                       int error_number) {
  VmStatus status = {
      .error_number = error_number, .call = VmCall::kMove, .bytes = bytes};
  // The kernel does not mind if nothing is mapped there.
  HAK_CHECK(linux_.Unmap(to, bytes).ok());
  purged_.Remove(to, to + bytes);
  huge_.Remove(to, to + bytes);
  const auto change = [=](FakeRangeSet& mapped, FakeRangeSet&) {
    mapped.Add(to, to + bytes);
  };
  if (lose_target_ || LimitsRefuse(change) || !linux_.MapAt(to, bytes).ok()) {
    mapped_.Remove(to, to + bytes);
    status.target_lost = true;
    ++lost_;
  } else {
    change(mapped_, protected_);
  }
  return status;
}

VmStatus FakeVirtualMemory::Renew(Address address, std::size_t bytes) {
  Announce(VmCall::kPurge, address, bytes);
  const Guard guard(mutex_);
  HAK_CHECK(!protected_.ContainsAny(address, address + bytes));
  const VmStatus status = Do(VmCall::kPurge, address, bytes,
                             &LinuxVirtualMemory::Renew, kChangesNothing);
  if (status.ok()) purged_.Add(address, address + bytes);
  if (status.ok()) huge_.Remove(address, address + bytes);
  return status;
}

std::uint64_t FakeVirtualMemory::Random() {
  const Guard guard(mutex_);
  return random_();
}

std::uint64_t FakeVirtualMemory::NowMs() {
  std::uint64_t now_ms = 0;
  std::function<void()> after;
  {
    const Guard guard(mutex_);
    now_ms = now_ms_;
    after = std::exchange(after_now_, nullptr);
  }
  if (after) after();
  return now_ms;
}

void FakeVirtualMemory::RunAfterNextNow(std::function<void()> what) {
  const Guard guard(mutex_);
  after_now_ = std::move(what);
}

VirtualMemory::AddressRange FakeVirtualMemory::RegionRange() const {
  const Guard guard(mutex_);
  return region_range_.has_value() ? *region_range_ : linux_.RegionRange();
}

void FakeVirtualMemory::RefuseCall(std::uint64_t nth, int error_number,
                                   Refuse refuse, VmCall kind) {
  const Guard guard(mutex_);
  HAK_CHECK_GE(nth, 1u);
  HAK_CHECK_NE(error_number, 0);
  refuse_in_ = nth;
  refuse_error_ = error_number;
  refuse_ = refuse;
  refuse_kind_ = kind;
}

void FakeVirtualMemory::RefuseNothing() {
  const Guard guard(mutex_);
  refuse_in_ = 0;
}

void FakeVirtualMemory::LoseTargetOfRefusedMoves() {
  const Guard guard(mutex_);
  lose_target_ = true;
}

void FakeVirtualMemory::LoseSourceOfMoves() {
  const Guard guard(mutex_);
  lose_source_ = true;
}

void FakeVirtualMemory::LimitBytes(std::size_t bytes) {
  const Guard guard(mutex_);
  byte_limit_ = bytes;
}

void FakeVirtualMemory::LimitBlocks(std::size_t bytes) {
  const Guard guard(mutex_);
  block_limit_ = bytes;
}

void FakeVirtualMemory::LimitMappings(std::size_t mappings) {
  const Guard guard(mutex_);
  mapping_limit_ = mappings;
}

std::uint64_t FakeVirtualMemory::refused() const {
  const Guard guard(mutex_);
  return refused_;
}

std::uint64_t FakeVirtualMemory::looks() const {
  const Guard guard(mutex_);
  return looks_;
}

std::uint64_t FakeVirtualMemory::resident_looks() const {
  const Guard guard(mutex_);
  return resident_looks_;
}

std::uint64_t FakeVirtualMemory::lost() const {
  const Guard guard(mutex_);
  return lost_;
}

void FakeVirtualMemory::SetNowMs(std::uint64_t now_ms) {
  const Guard guard(mutex_);
  now_ms_ = now_ms;
}

void FakeVirtualMemory::AdvanceMs(std::uint64_t ms) {
  const Guard guard(mutex_);
  now_ms_ += ms;
}

void FakeVirtualMemory::SetMaxMappings(std::size_t mappings) {
  const Guard guard(mutex_);
  max_mappings_ = mappings;
}

void FakeVirtualMemory::SetRegionRange(AddressRange range) {
  const Guard guard(mutex_);
  region_range_ = range;
}

std::uint64_t FakeVirtualMemory::calls(VmCall kind) const {
  const Guard guard(mutex_);
  return calls_[static_cast<std::size_t>(kind)];
}

std::size_t FakeVirtualMemory::mapped_bytes() const {
  const Guard guard(mutex_);
  return mapped_.bytes();
}

std::size_t FakeVirtualMemory::mappings() const {
  const Guard guard(mutex_);
  return CountMappings(mapped_, protected_);
}

bool FakeVirtualMemory::IsMapped(Address address, std::size_t bytes) const {
  const Guard guard(mutex_);
  return mapped_.ContainsAll(address, address + bytes);
}

bool FakeVirtualMemory::IsProtected(Address address, std::size_t bytes) const {
  const Guard guard(mutex_);
  return protected_.ContainsAll(address, address + bytes) ||
         guarded_.ContainsAll(address, address + bytes);
}

bool FakeVirtualMemory::IsAnyProtected(Address address,
                                       std::size_t bytes) const {
  const Guard guard(mutex_);
  return protected_.ContainsAny(address, address + bytes) ||
         guarded_.ContainsAny(address, address + bytes);
}

std::size_t FakeVirtualMemory::protected_bytes() const {
  const Guard guard(mutex_);
  return protected_.bytes() + guarded_.bytes();
}

bool FakeVirtualMemory::IsPurged(Address address, std::size_t bytes) const {
  const Guard guard(mutex_);
  return purged_.ContainsAll(address, address + bytes);
}

bool FakeVirtualMemory::IsHuge(Address address, std::size_t bytes) const {
  const Guard guard(mutex_);
  return huge_.ContainsAll(address, address + bytes);
}

bool FakeVirtualMemory::WasPopulated(Address address, std::size_t bytes) const {
  const Guard guard(mutex_);
  return populated_.ContainsAll(address, address + bytes);
}

std::size_t FakeVirtualMemory::purged_bytes() const {
  const Guard guard(mutex_);
  return purged_.bytes();
}

void FakeVirtualMemory::ForgetPurges() {
  const Guard guard(mutex_);
  purged_ = FakeRangeSet();
}

void FakeVirtualMemory::CheckRange(Address address, std::size_t bytes) const {
  const std::size_t page_bytes = linux_.PageBytes();
  HAK_CHECK_NE(address, 0u);
  HAK_CHECK_NE(bytes, 0u);
  HAK_CHECK_EQ(address % page_bytes, 0u);
  HAK_CHECK_EQ(bytes % page_bytes, 0u);
  HAK_CHECK_GT(address + bytes, address);
}

int FakeVirtualMemory::CountCall(VmCall kind) {
  ++calls_[static_cast<std::size_t>(VmCall::kNone)];
  ++calls_[static_cast<std::size_t>(kind)];
  if (refuse_in_ == 0) return 0;
  if (refuse_kind_ != VmCall::kNone && refuse_kind_ != kind) return 0;
  if (refuse_in_ > 1) {
    --refuse_in_;
    return 0;
  }
  if (refuse_ == Refuse::kOnce) refuse_in_ = 0;
  ++refused_;
  return refuse_error_;
}

bool FakeVirtualMemory::LimitsRefuse(const Change& change) const {
  if (byte_limit_ == kNoLimit && mapping_limit_ == kNoLimit) return false;
  FakeRangeSet mapped = mapped_;
  FakeRangeSet protection = protected_;
  change(mapped, protection);
  if (mapped.bytes() > byte_limit_ && mapped.bytes() > mapped_.bytes()) {
    return true;
  }
  if (mapping_limit_ == kNoLimit) return false;
  const std::size_t mappings = CountMappings(mapped, protection);
  return mappings > mapping_limit_ &&
         mappings > CountMappings(mapped_, protected_);
}

}  // namespace hakmem
