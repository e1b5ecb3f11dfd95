#include "tools/hakmem/heap_process.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "allocator/profile/heap_tables.h"
#include "tools/hakmem/perf_map.h"
#include "tools/hakmem/process_blocks.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"

namespace hakmem::tools {
namespace {

constexpr char kMagic[8] = "hakheap";
constexpr std::uint32_t kMaxSites = 1 << 20;
constexpr std::uint32_t kMaxSiteBytes = 1 << 14;
constexpr std::uint64_t kMaxTableBytes = 1 << 28;
// Tries to read all tables as of one moment; then, each site for itself.
constexpr int kWholeTries = 8;
constexpr int kSiteTries = 16;

// Live, peak and allocated, as they lie in a site and in the totals.
struct RawKinds {
  struct {
    std::uint64_t samples;
    std::uint64_t blocks_256;
    std::uint64_t bytes;
  } kinds[3];

  HeapKinds Rounded() const {
    const auto figures = [this](int kind) -> HeapFigures {
      return {kinds[kind].samples, (kinds[kind].blocks_256 + 128) / 256,
              kinds[kind].bytes};
    };
    return {figures(0), figures(1), figures(2)};
  }
};

using RawVariances = std::uint64_t[3];

// The tables as they were copied.
struct Tables {
  std::uint64_t mean_bytes = 0;
  RawKinds totals = {};
  std::uint64_t lost_samples = 0;
  std::uint32_t site_count = 0;
  std::vector<char> sites;
};

class TablesReader {
 public:
  explicit TablesReader(const ProcessImage& image) : image_(image) {}

  absl::Status Find() {
    const absl::Status status =
        image_.ReadTables("hakmem_heap_tables",
                          "it keeps no heap profile that others can read", at_);
    if (!status.ok()) return status;
    const std::uint64_t stack_end =
        std::uint64_t{at_.stack_offset} + std::uint64_t{8} * at_.most_frames;
    if (std::memcmp(at_.magic, kMagic, sizeof(kMagic)) != 0 ||
        at_.version != HeapTablesDescriptor::kVersion ||
        at_.descriptor_bytes < sizeof(at_) || at_.site_bytes > kMaxSiteBytes ||
        at_.most_sites > kMaxSites ||
        std::uint64_t{at_.site_bytes} * at_.most_sites > kMaxTableBytes ||
        at_.stack_offset < sizeof(RawKinds) || stack_end > at_.site_bytes ||
        at_.frames_offset > at_.site_bytes - 4 ||
        at_.variances_offset > at_.site_bytes - sizeof(RawVariances)) {
      return image_.UnknownForm("keeps its heap profile");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tables> Read() const {
    Tables tables;
    absl::StatusOr<bool> whole = Consistently(kWholeTries, [&] {
      const absl::Status status = ReadTotals(tables);
      return status.ok() ? ReadSites(tables) : status;
    });
    if (!whole.ok()) return whole.status();
    if (*whole) return tables;
    // It samples too fast for that, or was stopped while it did: each site is
    // of a moment of its own. Sites are only added, so the last count is of
    // sites that are there.
    const void* first = nullptr;
    if (absl::Status status = Get(at_.sites, first); !status.ok())
      return status;
    for (std::size_t at = 0; at < tables.sites.size(); at += at_.site_bytes) {
      whole = Consistently(kSiteTries, [&] {
        return image_.Read(AddressOf(first) + at, tables.sites.data() + at,
                           at_.site_bytes);
      });
      if (!whole.ok()) return whole.status();
    }
    const absl::StatusOr<Tables> totals = ReadTotalsAlone();
    if (!totals.ok()) return totals.status();
    tables.totals = totals->totals;
    tables.lost_samples = totals->lost_samples;
    return tables;
  }

  absl::StatusOr<Tables> ReadTotalsAlone() const {
    Tables tables;
    const absl::StatusOr<bool> whole =
        Consistently(kSiteTries, [&] { return ReadTotals(tables); });
    if (!whole.ok()) return whole.status();
    return tables;
  }

  const HeapTablesDescriptor& at() const { return at_; }
  std::string Who() const { return image_.Who(); }

 private:
  template <typename T>
  absl::Status Get(const void* there, T& value) const {
    return image_.Read(AddressOf(there), &value, sizeof(value));
  }
  // Calls `read` until the process has changed nothing meanwhile, or `tries`
  // times: it goes on. True: it is of one moment.
  template <typename ReadOnce>
  absl::StatusOr<bool> Consistently(int tries, ReadOnce read) const {
    for (; tries > 0; --tries) {
      std::uint64_t before = 0;
      std::uint64_t after = 0;
      absl::Status status = Get(at_.sequence, before);
      if (status.ok()) status = read();
      if (status.ok()) status = Get(at_.sequence, after);
      if (!status.ok()) return status;
      if (before == after && before % 2 == 0) return true;
    }
    return false;
  }

  absl::Status ReadTotals(Tables& tables) const {
    absl::Status status = Get(at_.mean_bytes, tables.mean_bytes);
    if (status.ok()) status = Get(at_.totals, tables.totals);
    if (status.ok()) status = Get(at_.lost_samples, tables.lost_samples);
    if (status.ok()) status = Get(at_.site_count, tables.site_count);
    if (!status.ok()) return status;
    if (tables.site_count > at_.most_sites) {
      return absl::DataLossError(
          absl::StrCat("the heap profile of ", Who(), " is damaged"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSites(Tables& tables) const {
    tables.sites.resize(std::size_t{tables.site_count} * at_.site_bytes);
    if (tables.sites.empty()) return absl::OkStatus();
    const void* first = nullptr;
    if (absl::Status status = Get(at_.sites, first); !status.ok())
      return status;
    return image_.Read(AddressOf(first), tables.sites.data(),
                       tables.sites.size());
  }

  const ProcessImage& image_;
  HeapTablesDescriptor at_ = {};
};

// Finds the modules of addresses, each once.
class Places {
 public:
  Places(const ProcessImage& image, HeapModules& modules,
         std::vector<HeapMapping>& mappings)
      : image_(image), modules_(modules), mappings_(mappings) {
    if (!image.is_core()) compiled_ = PerfMap::OfProcess(image.pid());
  }

  Frame FrameOf(std::uint64_t address) {
    for (const HeapMapping& known : mappings_) {
      if (address >= known.begin && address < known.end) {
        return {.module = known.module, .offset = address - known.base};
      }
    }
    // It is a return address. Such code may lie in a file without a name.
    const PerfMap::Function* const compiled = compiled_.At(address - 1);
    if (compiled != nullptr) {
      mappings_.push_back(
          {.module = modules_.Add({.path = compiled_.path(),
                                   .build_id = "",
                                   .source = compiled_.source()}),
           .begin = compiled->begin,
           .end = compiled->end + 1});
      return {.module = mappings_.back().module, .offset = address};
    }
    std::uint64_t moved = 0;
    const MappedFile* file = image_.FileAt(address, moved);
    if (file == nullptr) return {.offset = address};
    mappings_.push_back({.module = modules_.Add(image_.ModuleOf(*file)),
                         .base = moved,
                         .begin = file->begin,
                         .end = file->end,
                         .offset = file->offset});
    return {.module = mappings_.back().module, .offset = address - moved};
  }

 private:
  const ProcessImage& image_;
  HeapModules& modules_;
  std::vector<HeapMapping>& mappings_;
  PerfMap compiled_;
};

HeapSite SiteOf(const char* bytes, const HeapTablesDescriptor& at,
                std::uint64_t mean_bytes, Places& places) {
  HeapSite site;
  RawKinds kinds;
  std::memcpy(&kinds, bytes, sizeof(kinds));
  site.figures = kinds.Rounded();
  RawVariances told;
  std::memcpy(&told, bytes + at.variances_offset, sizeof(told));
  SetVariances(told, mean_bytes, site.figures);
  std::uint32_t frames = 0;
  std::memcpy(&frames, bytes + at.frames_offset, sizeof(frames));
  site.addresses.resize(std::min(frames, at.most_frames));
  const char* word = bytes + at.stack_offset;
  for (std::uint64_t& address : site.addresses) {
    std::memcpy(&address, word, sizeof(address));
    word += sizeof(address);
    site.stack.push_back(places.FrameOf(address));
  }
  return site;
}

// As ps shows it.
std::string TitleOf(std::uint64_t pid, std::string_view program) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cmdline"));
  std::string words;
  std::getline(file, words, '\0');
  std::string_view title = words;
  return std::string(absl::ConsumePrefix(&title, absl::StrCat(program, ": "))
                         ? absl::StripTrailingAsciiWhitespace(title)
                         : "");
}

std::string WhyNothingIsSampled(const TablesReader& reader) {
  return absl::StrCat(reader.Who(),
                      " does not sample: it was started with "
                      "HAKMEM_PROFILE_BYTES=0, or has not allocated yet");
}

}  // namespace

bool IsProcess(const std::string& name) {
  std::uint64_t pid = 0;
  return absl::SimpleAtoi(name, &pid);
}

bool IsProcessOrCore(const std::string& name) {
  return IsProcess(name) || IsCoreFile(name);
}

absl::StatusOr<HeapProfiles> ReadHeapOfProcess(const std::string& name,
                                               HeapModules& modules) {
  const absl::StatusOr<ProcessImage> image = ProcessImage::Open(name);
  if (!image.ok()) return image.status();
  TablesReader reader(*image);
  if (absl::Status status = reader.Find(); !status.ok()) return status;
  const absl::StatusOr<Tables> tables = reader.Read();
  if (!tables.ok()) return tables.status();
  HeapProfile profile;
  profile.variant = image->ReadText(AddressOf(reader.at().variant));
  if (tables->mean_bytes == 0) {
    return absl::FailedPreconditionError(WhyNothingIsSampled(reader));
  }
  profile.pid = image->pid();
  profile.program = image->program();
  profile.version = image->ReadText(AddressOf(reader.at().hakmem_version));
  profile.mean_bytes = tables->mean_bytes;
  if (!image->is_core()) {
    profile.title = TitleOf(profile.pid, profile.program);
    profile.time_ns =
        static_cast<std::uint64_t>(absl::ToUnixNanos(absl::Now()));
  }
  profile.totals = tables->totals.Rounded();
  profile.lost_samples = tables->lost_samples;
  profile.has_end = true;
  profile.whole = true;
  Places places(*image, modules, profile.mappings);
  for (std::size_t at = 0; at < tables->sites.size();
       at += reader.at().site_bytes) {
    profile.sites.push_back(SiteOf(tables->sites.data() + at, reader.at(),
                                   profile.mean_bytes, places));
    AddVariances(profile.sites.back().figures, profile.totals);
  }
  profile.KeepLiveBelowPeak();
  if (const absl::StatusOr<ProcessBlocks> all = CountBlocks(*image); all.ok()) {
    profile.counted = {all->Total().blocks, all->Total().bytes};
  }
  if (!image->is_core()) profile.resident_bytes = ResidentBytes(image->pid());
  HeapProfiles profiles;
  profiles.in_file = 1;
  profiles.last.push_back(std::move(profile));
  return profiles;
}

absl::StatusOr<HeapKinds> ReadHeapTotals(const ProcessImage& image) {
  TablesReader reader(image);
  if (absl::Status status = reader.Find(); !status.ok()) return status;
  const absl::StatusOr<Tables> tables = reader.ReadTotalsAlone();
  if (!tables.ok()) return tables.status();
  if (tables->mean_bytes == 0) {
    return absl::FailedPreconditionError("it does not sample");
  }
  return tables->totals.Rounded();
}

}  // namespace hakmem::tools
