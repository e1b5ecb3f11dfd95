// The heap profile, written down: lines of JSON (docs/heap_profile.md).
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread; nothing
// allocates, and no lock is held while a line is written, so that it may go to
// a pipe. Sites that other threads change meanwhile are each of a moment of
// their own.
#ifndef HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_
#define HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/profile/heap_profile.h"

namespace hakmem {

// The process that the profile is of.
struct ProfileSource {
  std::int64_t process_id = 0;
  std::string_view program;
  std::string_view version;
  std::string_view variant;
  std::uint64_t time_ns = 0;  // since 1970
};

// What is too much for the stack of a handler of a signal.
struct ProfileRoom {
  // A line is at most a site's, with 32 addresses, or a module's, each byte of
  // whose path may be written as four.
  static constexpr std::size_t kLineBytes = 2048;
  // So many modules are told of; addresses in others have none.
  static constexpr unsigned kModules = 192;

  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };
  Range ranges[kModules];
  char line[kLineBytes];
  ProfileSite site;
};

// False: the sink said so. `waits`: see HeapProfile::Totals.
bool WriteProfile(HeapProfile& profile, const ProfileSource& source,
                  const LineSink& sink, ProfileRoom& room, bool waits = true);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_
