#include "tools/hakmem/process_statistics.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/statistics/statistics_tables.h"
#include "tools/hakmem/process_image.h"

namespace hakmem::tools {
namespace {

constexpr char kMagic[8] = "hakstat";
constexpr std::uint32_t kMaxHeaps = 1 << 20;
constexpr std::uint32_t kMaxHeapBytes = 1 << 20;
constexpr std::uint32_t kMaxClasses = 255;
constexpr std::uint32_t kMaxWindows = 255;
// A process that takes and gives back memory while it is read may show more
// free memory than it has; so often it is read again.
constexpr int kTries = 5;

template <typename T>
T At(const std::vector<char>& bytes, std::size_t offset) {
  T value = {};
  if (offset + sizeof(value) <= bytes.size()) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
  }
  return value;
}

// A class's word of calls (PlaceKind::kHeapCalls).
std::uint64_t CallsOf(std::uint64_t word) {
  const std::uint64_t low = word & 0xffff;
  const std::uint64_t calls = (word >> 16) + low + (low < 0x8000 ? 0x10000 : 0);
  return calls & 0xffff'ffff'ffff;
}

class CountersReader {
 public:
  explicit CountersReader(const ProcessImage& image) : image_(image) {}

  absl::Status Find() {
    const absl::StatusOr<std::uint64_t> address = image_.FindTables(
        "hakmem_statistics_tables", "it does not say where its counters lie");
    if (!address.ok()) return address.status();
    absl::Status status =
        image_.Read(*address, &tables_, offsetof(StatisticsTables, places));
    if (!status.ok()) return status;
    if (std::memcmp(tables_.magic, kMagic, sizeof(kMagic)) != 0 ||
        tables_.version != StatisticsTables::kVersion ||
        tables_.place_bytes != sizeof(StatisticPlace) ||
        tables_.place_count > StatisticsTables::kMostPlaces ||
        tables_.heap_bytes > kMaxHeapBytes || tables_.classes > kMaxClasses ||
        tables_.layout_step_bytes > kMaxClasses) {
      return image_.UnknownForm("keeps its counters");
    }
    status = image_.Read(*address + tables_.place_offset, tables_.places,
                         tables_.place_count * sizeof(StatisticPlace));
    if (!status.ok()) return status;
    layouts_.resize(std::size_t{tables_.classes} * tables_.layout_step_bytes);
    return image_.Read(AddressOf(tables_.class_layouts), layouts_.data(),
                       layouts_.size());
  }

  // All numbers once, each of its moment.
  absl::Status Read() {
    for (std::uint64_t& number : numbers_) number = 0;
    for (std::uint32_t i = 0; i < tables_.place_count; ++i) {
      const StatisticPlace& place = tables_.places[i];
      // What a later hakmem counts beside.
      if (static_cast<std::size_t>(place.statistic) >= kStatisticCount ||
          place.kind != PlaceKind::kProcess) {
        continue;
      }
      std::uint64_t word = 0;
      const absl::Status status =
          TableReads(image_).At(place.word, word).status();
      if (!status.ok()) return status;
      Number(place.statistic) +=
          word * static_cast<std::uint64_t>(std::int64_t{place.weight});
    }
    return ReadHeaps();
  }

  std::uint64_t& Number(Statistic statistic) {
    return numbers_[static_cast<std::size_t>(statistic)];
  }
  const std::uint64_t* numbers() const { return numbers_; }
  const StatisticsTables& tables() const { return tables_; }

 private:
  absl::Status ReadHeaps() {
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    absl::Status status = TableReads(image_)
                              .At(tables_.heap_count, count)
                              .At(tables_.heaps, first)
                              .status();
    if (!status.ok()) return status;
    if (count > kMaxHeaps) {
      return absl::DataLossError(
          absl::StrCat("the tables of ", image_.Who(), " are damaged"));
    }
    Number(Statistic::kHeapsCreated) = count;
    std::vector<char> heap(tables_.heap_bytes);
    for (std::uint64_t id = 1; id <= count; ++id) {
      status = image_.Read(first + id * heap.size(), heap.data(), heap.size());
      if (!status.ok()) return status;
      AddHeap(heap);
    }
    return absl::OkStatus();
  }

  void AddHeap(const std::vector<char>& heap) {
    for (std::uint32_t i = 0; i < tables_.place_count; ++i) {
      const StatisticPlace& place = tables_.places[i];
      if (static_cast<std::size_t>(place.statistic) >= kStatisticCount)
        continue;
      const std::uint64_t offset =
          AddressOf(place.word) - AddressOf(tables_.model);
      const std::int64_t weight = place.weight;
      if (place.kind == PlaceKind::kHeapCalls) AddCalls(heap, offset);
      if (place.kind == PlaceKind::kHeapSpans) AddSpans(heap, offset, weight);
      if (place.kind == PlaceKind::kHeap) {
        Number(place.statistic) += At<std::uint64_t>(heap, offset) *
                                   static_cast<std::uint64_t>(weight);
      }
    }
  }

  void AddCalls(const std::vector<char>& heap, std::size_t offset) {
    for (std::uint32_t i = 0; i < tables_.classes; ++i) {
      const std::uint64_t calls = CallsOf(At<std::uint64_t>(
          heap, offset + std::size_t{i} * tables_.class_step_bytes));
      const auto bytes = At<std::uint32_t>(
          layouts_, std::size_t{i} * tables_.layout_step_bytes);
      const bool tiny = i < tables_.tiny_classes;
      Number(tiny ? Statistic::kTinyAllocations
                  : Statistic::kPoolAllocations) += calls;
      Number(tiny ? Statistic::kTinyBytes : Statistic::kPoolBytes) +=
          calls * bytes;
    }
  }

  void AddSpans(const std::vector<char>& heap, std::size_t offset,
                std::int64_t words) {
    for (std::int64_t i = 0; i < words && offset < heap.size(); ++i) {
      const std::uint64_t bytes = At<std::uint16_t>(heap, offset) * kUnitBytes;
      Number(Statistic::kGrantedBytes) -= bytes;
      Number(Statistic::kCachedBytes) += bytes;
      offset += sizeof(std::uint64_t);
    }
  }

  const ProcessImage& image_;
  StatisticsTables tables_ = {};
  std::vector<char> layouts_;
  std::uint64_t numbers_[kStatisticCount] = {};
};

absl::Status ReadWindows(const ProcessImage& image,
                         const StatisticsTables& tables,
                         std::vector<MemoryRange>& windows) {
  if (tables.windows == 0 || tables.windows > kMaxWindows) {
    return absl::OkStatus();
  }
  windows.resize(tables.windows);
  return image.Read(AddressOf(tables.first_window), windows.data(),
                    windows.size() * sizeof(windows[0]));
}

bool IsNegative(std::uint64_t number) {
  return static_cast<std::int64_t>(number) < 0;
}

}  // namespace

std::optional<std::uint64_t> ResidentBytes(std::uint64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", LivingThread(pid), "/statm"));
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  if (!(file >> all >> resident)) return std::nullopt;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

absl::StatusOr<ProcessStatistics> ReadStatistics(const ProcessImage& image) {
  CountersReader reader(image);
  if (absl::Status status = reader.Find(); !status.ok()) return status;
  std::uint64_t& granted = reader.Number(Statistic::kGrantedBytes);
  for (int i = 0; i < kTries; ++i) {
    if (absl::Status status = reader.Read(); !status.ok()) return status;
    if (!IsNegative(granted)) break;
  }
  if (IsNegative(granted)) granted = 0;
  ProcessStatistics read;
  // They are the first ones of Statistics.
  std::memcpy(reinterpret_cast<char*>(&read.statistics), reader.numbers(),
              kStatisticCount * sizeof(std::uint64_t));
  if (absl::Status status = ReadWindows(image, reader.tables(), read.windows);
      !status.ok()) {
    return status;
  }
  read.variant = image.ReadText(AddressOf(reader.tables().variant));
  read.version = image.ReadText(AddressOf(reader.tables().hakmem_version));
  read.pid = image.pid();
  read.program = image.program();
  if (!image.is_core()) read.resident_bytes = ResidentBytes(image.pid());
  return read;
}

}  // namespace hakmem::tools
