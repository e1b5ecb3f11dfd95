// The heap profile, written down: lines of JSON (docs/heap_profile.md).
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread; nothing
// allocates, and no lock is held while a line is written, so that it may go to
// a pipe. Sites that other threads change meanwhile are each of a moment of
// their own. Takes some 10 KiB of stack.
#ifndef HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_
#define HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_

#include <cstdint>
#include <string_view>

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

// Takes a line, with its end. False: it could not be written, and nothing else
// needs to be.
struct ProfileSink {
  bool (*write)(void* context, std::string_view line);
  void* context;
};

// False: the sink said so.
bool WriteProfile(HeapProfile& profile, const ProfileSource& source,
                  const ProfileSink& sink);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_PROFILE_TEXT_H_
