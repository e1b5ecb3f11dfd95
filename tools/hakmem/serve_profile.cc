#include "tools/hakmem/serve_profile.h"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/heap_process.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/pprof_profile.h"

namespace hakmem::tools {
namespace {

// Names take memory: one profile at a time has them.
std::mutex g_names;

absl::StatusOr<HeapProfiles> Read(const std::vector<std::uint64_t>& pids,
                                  HeapModules& modules) {
  HeapProfiles all;
  for (const std::uint64_t pid : pids) {
    absl::StatusOr<HeapProfiles> read =
        ReadHeapOfProcess(absl::StrCat(pid), modules);
    if (!read.ok()) return read.status();
    all.Append(*std::move(read));
  }
  return all;
}

// A difference may be below 0, as pprof's numbers may.
void Subtract(const HeapFigures& before, HeapFigures& after) {
  after.samples -= before.samples;
  after.blocks -= before.blocks;
  after.bytes -= before.bytes;
}

template <typename Make>
std::string WithNames(const HeapModules& modules, const HeapProfiles& profiles,
                      HeapKind by, std::uint64_t duration_ns, Make make) {
  const std::lock_guard lock(g_names);
  const std::vector<std::string> no_files;
  std::string made;
  {
    HeapSymbols symbols(modules, {});
    symbols.Resolve(profiles);
    made = make(HeapReport{.files = no_files,
                           .profiles = profiles,
                           .symbols = symbols,
                           .by = by,
                           .duration_ns = duration_ns});
  }
  ::malloc_trim(0);
  return made;
}

}  // namespace

absl::Status KeepChanges(const HeapProfile& before, HeapProfile& after) {
  if (!AreOfOneRun(before, after)) {
    return absl::FailedPreconditionError(
        absl::StrCat(ProcessName(after), " has begun anew meanwhile"));
  }
  std::map<std::vector<std::uint64_t>, const HeapKinds*> known;
  for (const HeapSite& site : before.sites) {
    known[site.addresses] = &site.figures;
  }
  for (HeapSite& site : after.sites) {
    const auto found = known.find(site.addresses);
    if (found == known.end()) continue;
    Subtract(found->second->live, site.figures.live);
    Subtract(found->second->peak, site.figures.peak);
    Subtract(found->second->allocated, site.figures.allocated);
  }
  std::erase_if(after.sites, [](const HeapSite& site) {
    return site.figures.live.bytes == 0 && site.figures.allocated.bytes == 0;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> PprofOf(const ProfileQuestion& question,
                                    const Pause& pause) {
  HeapModules modules;
  absl::StatusOr<HeapProfiles> read = Read(question.pids, modules);
  if (!read.ok()) return read.status();
  HeapProfiles profiles = *std::move(read);
  std::uint64_t duration_ns = 0;
  if (question.time != absl::ZeroDuration()) {
    const HeapProfiles before = std::move(profiles);
    if (!pause(question.time)) {
      return absl::UnavailableError("this server ends");
    }
    read = Read(question.pids, modules);
    if (!read.ok()) return read.status();
    profiles = *std::move(read);
    for (std::size_t i = 0; i < profiles.last.size(); ++i) {
      const absl::Status status = KeepChanges(before.last[i], profiles.last[i]);
      if (!status.ok()) return status;
    }
    duration_ns = profiles.last.front().time_ns - before.last.front().time_ns;
  }
  return Gzipped(
      WithNames(modules, profiles, question.by, duration_ns, HeapAsPprof));
}

absl::StatusOr<std::string> ProfilePageOf(const ProfileQuestion& question) {
  HeapModules modules;
  const absl::StatusOr<HeapProfiles> profiles = Read(question.pids, modules);
  if (!profiles.ok()) return profiles.status();
  return WithNames(modules, *profiles, question.by, 0, HeapAsPage);
}

}  // namespace hakmem::tools
