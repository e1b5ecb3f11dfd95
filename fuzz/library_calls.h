// What the library exports and no header of the C library declares.
//
// Owns: nothing. Called by: symbols_fuzz. Thread-safety: as each function says.
#ifndef HAKMEM_FUZZ_LIBRARY_CALLS_H_
#define HAKMEM_FUZZ_LIBRARY_CALLS_H_

#include <cstddef>
#include <new>

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void cfree(void* pointer) noexcept;
void free_sized(void* pointer, std::size_t size) noexcept;
void free_aligned_sized(void* pointer, std::size_t alignment,
                        std::size_t size) noexcept;

// jemalloc's.
void* mallocx(std::size_t size, int flags) noexcept;
void* rallocx(void* pointer, std::size_t size, int flags) noexcept;
std::size_t xallocx(void* pointer, std::size_t size, std::size_t extra,
                    int flags) noexcept;
std::size_t sallocx(const void* pointer, int flags) noexcept;
void dallocx(void* pointer, int flags) noexcept;
void sdallocx(void* pointer, std::size_t size, int flags) noexcept;
std::size_t nallocx(std::size_t size, int flags) noexcept;
int mallctl(const char* name, void* old_value, std::size_t* old_bytes,
            void* new_value, std::size_t new_bytes) noexcept;
int mallctlnametomib(const char* name, std::size_t* mib,
                     std::size_t* length) noexcept;
int mallctlbymib(const std::size_t* mib, std::size_t length, void* old_value,
                 std::size_t* old_bytes, void* new_value,
                 std::size_t new_bytes) noexcept;
void malloc_stats_print(void (*write)(void* context, const char* text),
                        void* context, const char* options);

// What code with allocation tokens calls.
void* __alloc_token_malloc(std::size_t size, std::size_t token);
void* __alloc_token_calloc(std::size_t count, std::size_t size,
                           std::size_t token);
void* __alloc_token_realloc(void* pointer, std::size_t size, std::size_t token);
void* __alloc_token_reallocarray(void* pointer, std::size_t count,
                                 std::size_t size, std::size_t token);
void* __alloc_token_aligned_alloc(std::size_t alignment, std::size_t size,
                                  std::size_t token);
void* __alloc_token_memalign(std::size_t alignment, std::size_t size,
                             std::size_t token);
void* __alloc_token_valloc(std::size_t size, std::size_t token);
void* __alloc_token__Znwm(std::size_t size, std::size_t token);
void* __alloc_token__ZnamRKSt9nothrow_t(std::size_t size,
                                        const std::nothrow_t& nothrow,
                                        std::size_t token);
void* __alloc_token__ZnamSt11align_val_t(std::size_t size,
                                         std::align_val_t alignment,
                                         std::size_t token);
void* __alloc_token_5_malloc(std::size_t size);
}
// NOLINTEND(bugprone-reserved-identifier)

#endif  // HAKMEM_FUZZ_LIBRARY_CALLS_H_
