#include "allocator/profile/heap_profile.h"

#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/profile/exponential.h"
#include "allocator/stacks/cached_unwinder.h"

namespace hakmem {
namespace {

// Live bytes have to pass the last peak by a 32nd to be a new one: so seldom
// that all sites can be gone through then.
constexpr std::uint64_t kPeakShare = 32;

bool IsSame(const CallStack& a, const CallStack& b) {
  return a.count == b.count &&
         std::memcmp(a.addresses, b.addresses,
                     a.count * sizeof(a.addresses[0])) == 0;
}

}  // namespace

void HeapProfile::Start(std::uint64_t mean_bytes, bool stacks,
                        Region::Window window) {
  mean_bytes_ = mean_bytes;
  stacks_ = stacks;
  // In a small address space there may be no room: all samples are lost.
  if (window.bytes < Table::kWindowBytes) return;
  const std::size_t page_bytes = memory_.PageBytes();
  buckets_.Place(window.begin, RoundUp(sizeof(Table), page_bytes), 0);
  nodes_.Place(window.begin + Table::kNodesAt,
               RoundUp(Table::kNodes * sizeof(Table::Node), page_bytes), 0);
  sites_.Place(window.begin + Table::kSitesAt,
               RoundUp(Table::kSites * sizeof(ProfileSite), page_bytes), 0);
  first_site_ = &SiteAt(0);
}

void HeapProfile::CaptureCaller(const void* frame, CallStack& stack) const {
  stack.count = 0;
  if (stacks_) UnwindOwnStack(frame, stack);
}

bool HeapProfile::Grow(MetadataTable& table, std::size_t bytes) {
  if (!refused_) refused_ = !table.EnsureMapped(memory_, bytes).ok();
  return !refused_;
}

bool HeapProfile::EnsureTable() {
  if (table_ == nullptr && Grow(buckets_, sizeof(Table))) {
    table_ = reinterpret_cast<Table*>(buckets_.start());
  }
  return table_ != nullptr;
}

// Its number + 1; 0: there is no room.
std::uint32_t HeapProfile::FindOrAddSite(const CallStack& stack) {
  const std::uint64_t hash = HashOf(stack.addresses, stack.count);
  std::uint32_t& bucket = table_->site_buckets[hash % Table::kSiteBuckets];
  for (std::uint32_t at = bucket; at != 0; at = SiteAt(at - 1).next) {
    const ProfileSite& site = SiteAt(at - 1);
    if (site.hash == hash && IsSame(site.stack, stack)) return at;
  }
  if (totals_.sites == Table::kSites ||
      !Grow(sites_, (totals_.sites + 1) * sizeof(ProfileSite))) {
    return 0;
  }
  ProfileSite& site = SiteAt(totals_.sites++);
  site.hash = hash;
  site.stack.count = stack.count;
  std::memcpy(site.stack.addresses, stack.addresses,
              stack.count * sizeof(stack.addresses[0]));
  site.next = bucket;
  bucket = totals_.sites;
  return bucket;
}

std::uint32_t HeapProfile::TakeNode() {
  const std::uint32_t node = table_->free_nodes;
  if (node != 0) {
    table_->free_nodes = NodeAt(node - 1).next;
    return node;
  }
  if (table_->unused_node == Table::kNodes ||
      !Grow(nodes_, (table_->unused_node + 1) * sizeof(Table::Node))) {
    return 0;
  }
  return ++table_->unused_node;
}

std::uint32_t& HeapProfile::LinkTo(const void* block) {
  const auto address = reinterpret_cast<Address>(block);
  std::uint32_t* link =
      &table_->node_buckets[MixBits(address) % Table::kNodeBuckets];
  while (*link != 0 && NodeAt(*link - 1).block != address) {
    link = &NodeAt(*link - 1).next;
  }
  return *link;
}

ProfileFigures HeapProfile::WeightOf(std::size_t bytes,
                                     unsigned thinning) const {
  const auto size = static_cast<double>(bytes);
  const double mean = static_cast<double>(mean_bytes_) *
                      static_cast<double>(std::uint64_t{1} << thinning);
  const double chance = SampledChance(size / mean);
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): lround is libm's.
  return {1, static_cast<std::uint64_t>(256 / chance + 0.5),
          static_cast<std::uint64_t>(size / chance)};
}

// What the sample with this weight adds to the variances of its site.
std::uint64_t HeapProfile::VarianceOf(const ProfileFigures& weight) const {
  const double means =
      static_cast<double>(weight.bytes) / static_cast<double>(mean_bytes_);
  const double not_taken = 1 - 256 / static_cast<double>(weight.blocks_256);
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): as above.
  return static_cast<std::uint64_t>(means * means * not_taken * 65536 + 0.5);
}

void HeapProfile::RemoveAt(std::uint32_t& link) {
  const std::uint32_t number = link;
  Table::Node& node = NodeAt(number - 1);
  ProfileSite& site = SiteAt(node.site);
  site.live.Subtract(node.weight);
  site.variances.live -= VarianceOf(node.weight);
  totals_.live.Subtract(node.weight);
  link = node.next;
  node.next = table_->free_nodes;
  table_->free_nodes = number;
}

void HeapProfile::NotePeak() {
  if (totals_.live.bytes <= peak_mark_bytes_) return;
  peak_mark_bytes_ = totals_.live.bytes + totals_.live.bytes / kPeakShare;
  totals_.peak = totals_.live;
  for (std::uint32_t i = 0; i < totals_.sites; ++i) {
    ProfileSite& site = SiteAt(i);
    site.peak = site.live;
    site.variances.peak = site.variances.live;
  }
}

void HeapProfile::Add(const void* block, std::size_t bytes,
                      SizeClass asked_class, const CallStack& stack,
                      unsigned thinning) {
  const ProfileFigures weight = WeightOf(bytes, thinning);
  const Change change(*this);
  totals_.allocated.Add(weight);
  if (!EnsureTable() || !TryAdd(block, weight, asked_class, stack)) {
    ++totals_.lost_samples;
  }
}

// False: there is no room.
bool HeapProfile::TryAdd(const void* block, const ProfileFigures& weight,
                         SizeClass asked_class, const CallStack& stack) {
  // A block that two threads freed at once may have left its sample.
  if (std::uint32_t& link = LinkTo(block); link != 0) RemoveAt(link);
  const std::uint32_t place = FindOrAddSite(stack);
  if (place == 0) return false;
  ProfileSite& site = SiteAt(place - 1);
  site.allocated.Add(weight);
  site.variances.allocated += VarianceOf(weight);
  return TryAddLive(
      {reinterpret_cast<Address>(block), weight, place - 1, 0, asked_class});
}

bool HeapProfile::TryAddLive(const Table::Node& sample) {
  const std::uint32_t number = TakeNode();
  if (number == 0) return false;
  LinkTo(reinterpret_cast<const void*>(sample.block)) = number;
  NodeAt(number - 1) = sample;
  ProfileSite& site = SiteAt(sample.site);
  site.live.Add(sample.weight);
  site.variances.live += VarianceOf(sample.weight);
  totals_.live.Add(sample.weight);
  NotePeak();
  return true;
}

HeapProfileTable::Node HeapProfile::Remove(const void* block) {
  const Change change(*this);
  std::uint32_t none = 0;
  std::uint32_t& link = table_ == nullptr ? none : LinkTo(block);
  if (link == 0) return {};
  Table::Node sample = NodeAt(link - 1);
  RemoveAt(link);
  sample.next = 0;
  return sample;
}

// Whoever freed the block at the same time may have had it sampled anew.
void HeapProfile::PutBack(const Table::Node& sample) {
  const Change change(*this);
  if (LinkTo(reinterpret_cast<const void*>(sample.block)) != 0) return;
  if (!TryAddLive(sample)) ++totals_.lost_samples;
}

SizeClass HeapProfile::AskedClass(const void* block, SizeClass otherwise) {
  const FutexLockHolder hold(lock_);
  const std::uint32_t number = table_ == nullptr ? 0 : LinkTo(block);
  return number == 0 ? otherwise : NodeAt(number - 1).asked_class;
}

bool HeapProfile::SetAskedClass(const void* block, SizeClass asked_class) {
  const FutexLockHolder hold(lock_);
  const std::uint32_t number = table_ == nullptr ? 0 : LinkTo(block);
  if (number == 0) return false;
  NodeAt(number - 1).asked_class = asked_class;
  return true;
}

ProfileTotals HeapProfile::Totals(bool waits) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool held = waits ? (lock_.Lock(), true) : lock_.TryLock();
  ProfileTotals totals = totals_;
  totals.mean_bytes = mean_bytes_;
  if (held) lock_.Unlock();
  return totals;
}

bool HeapProfile::CopySite(std::uint32_t index, ProfileSite& site,
                           bool waits) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool held = waits ? (lock_.Lock(), true) : lock_.TryLock();
  const bool is_there = index < totals_.sites;
  if (is_there) site = SiteAt(index);
  if (held) lock_.Unlock();
  return is_there;
}

void HeapProfile::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  HAK_CHECK_EQ(sequence_.load(std::memory_order_relaxed) % 2, 0U);  // PF3
  if (table_ == nullptr) return;
  ProfileFigures nodes;
  std::uint64_t variance = 0;
  for (std::uint32_t bucket : table_->node_buckets) {
    for (; bucket != 0; bucket = NodeAt(bucket - 1).next) {
      HAK_CHECK_LE(bucket, table_->unused_node);  // PF2
      const Table::Node& node = NodeAt(bucket - 1);
      HAK_CHECK_LT(node.site, totals_.sites);
      nodes.Add(node.weight);
      variance += VarianceOf(node.weight);
    }
  }
  ProfileFigures sites;
  for (std::uint32_t i = 0; i < totals_.sites; ++i) {
    sites.Add(SiteAt(i).live);
    variance -= SiteAt(i).variances.live;
  }
  HAK_CHECK(nodes == totals_.live);  // PF1
  HAK_CHECK(sites == totals_.live);
  HAK_CHECK_EQ(variance, 0U);
}

}  // namespace hakmem
