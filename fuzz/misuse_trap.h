// Survives the allocator's fatal reports: what would end the process comes back
// as text.
//
// Owns: the place to jump back to, one per thread. Called by: fuzz targets,
// which are linked so that the platform's AbortProcess and WriteFd are those of
// misuse_trap.cc (_TRAP_LINKOPTS in fuzz/BUILD). Thread-safety: any thread.
//
// The jump leaves all frames of the allocator as they are. A report about a
// pointer is made before anything is changed and without a lock; after any
// other the allocator must not be used again.
#ifndef HAKMEM_FUZZ_MISUSE_TRAP_H_
#define HAKMEM_FUZZ_MISUSE_TRAP_H_

#include <csetjmp>
#include <cstddef>
#include <string_view>

#include "allocator/reports/report_text.h"

namespace hakmem {

class MisuseTrap {
 public:
  // Reports go without stacks: those are the same for every input, and to name
  // their functions takes longer than all else.
  MisuseTrap() { SetReportStacks(false); }

  // Makes the call; the report that ended it, or nothing.
  template <typename F>
  std::string_view Catch(F call) {
    length_ = 0;
    MisuseTrap* const outer = active_;
    if (setjmp(back_) == 0) {
      active_ = this;
      call();
    }
    active_ = outer;
    return {text_, length_};
  }

  // What a platform function has to say. False: nobody catches it.
  static bool Note(std::string_view text);
  static void Return();

 private:
  static constinit inline thread_local MisuseTrap* active_ = nullptr;

  std::jmp_buf back_;
  std::size_t length_ = 0;
  char text_[4096];
};

}  // namespace hakmem

#endif  // HAKMEM_FUZZ_MISUSE_TRAP_H_
