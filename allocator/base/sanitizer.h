// Which sanitizer the code is compiled for, as values for plain `if`.
//
// Owns: nothing. Called by: platform and above, tests. Thread-safety:
// constants.
#ifndef HAKMEM_ALLOCATOR_BASE_SANITIZER_H_
#define HAKMEM_ALLOCATOR_BASE_SANITIZER_H_

// clang answers by __has_feature, gcc by __SANITIZE_…__.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAK_INTERNAL_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define HAK_INTERNAL_TSAN 1
#endif
#if __has_feature(undefined_behavior_sanitizer)
#define HAK_INTERNAL_UBSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HAK_INTERNAL_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define HAK_INTERNAL_TSAN 1
#endif

namespace hakmem {

#if defined(HAK_INTERNAL_ASAN)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(HAK_INTERNAL_TSAN)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// gcc does not tell.
#if defined(HAK_INTERNAL_UBSAN)
inline constexpr bool kUndefinedBehaviorSanitizer = true;
#else
inline constexpr bool kUndefinedBehaviorSanitizer = false;
#endif

}  // namespace hakmem

#undef HAK_INTERNAL_ASAN
#undef HAK_INTERNAL_TSAN
#undef HAK_INTERNAL_UBSAN

#endif  // HAKMEM_ALLOCATOR_BASE_SANITIZER_H_
