// The revision that a product was linked from.
//
// Owns: its text. Called by: options, the command. Thread-safety: a constant.
//
// A product is stamped when it is linked, so a commit alone compiles nothing;
// other programs have "unknown" (docs/decisions/0084).
#ifndef HAKMEM_ALLOCATOR_BASE_REVISION_H_
#define HAKMEM_ALLOCATOR_BASE_REVISION_H_

namespace hakmem {

[[gnu::visibility("hidden")]] const char* Revision();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_REVISION_H_
