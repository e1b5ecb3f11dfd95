// The process's part in sampled guards: it listens to faults.
//
// Owns: the listener. Called by: the library's constructor.
// Thread-safety: once.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_SAMPLED_GUARDS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_SAMPLED_GUARDS_H_

namespace hakmem {

// Nothing, unless allocations are sampled.
void StartSampledGuards();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_SAMPLED_GUARDS_H_
