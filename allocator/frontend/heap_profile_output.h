// Where the heap profile goes: to whoever calls hakmem_heap_profile, and at the
// end of the process to a file.
//
// Owns: nothing. Called by: the process's end. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_HEAP_PROFILE_OUTPUT_H_
#define HAKMEM_ALLOCATOR_FRONTEND_HEAP_PROFILE_OUTPUT_H_

namespace hakmem {

// HAKMEM_HEAP_PROFILE, whose value this is. `signal`: the one that ends the
// process, in its handler; 0: it exits.
void WriteProfileAtEnd(const char* value, int signal);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_HEAP_PROFILE_OUTPUT_H_
