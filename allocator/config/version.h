// The version of hakmem.
//
// Owns: its text. Called by: reports, statistics, options, frontend.
// Thread-safety: a constant.
#ifndef HAKMEM_ALLOCATOR_CONFIG_VERSION_H_
#define HAKMEM_ALLOCATOR_CONFIG_VERSION_H_

namespace hakmem {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CONFIG_VERSION_H_
