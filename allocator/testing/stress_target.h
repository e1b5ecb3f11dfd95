// The allocator that the stress workload is run against.
//
// Owns: nothing. Called by: stress_workload; implemented over malloc
// (stress_main) and over the C++ API (api_stress_test).
// Thread-safety: every function may be called by any thread at any time.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_TARGET_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_TARGET_H_

#include <sys/types.h>

#include <cstddef>

namespace hakmem::stress {

class Target {
 public:
  virtual ~Target() = default;

  // As the C functions; null when out of memory.
  virtual void* Allocate(std::size_t size) = 0;
  virtual void* AllocateZeroed(std::size_t count, std::size_t size) = 0;
  virtual void* AllocateAligned(std::size_t alignment, std::size_t size) = 0;
  virtual void* Reallocate(void* block, std::size_t size) = 0;
  virtual void Free(void* block) = 0;
  // `alignment` as given to AllocateAligned, 0 for any other block.
  virtual void FreeSized(void* block, std::size_t size,
                         std::size_t alignment) = 0;
  virtual std::size_t UsableSize(void* block) = 0;

  // fork(), with whatever the allocator needs around it.
  virtual pid_t Fork() = 0;

  // Called last on every thread that has called any of the above.
  virtual void LeaveThread() = 0;
};

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_TARGET_H_
