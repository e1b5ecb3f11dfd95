// Hides values of test programs from the compiler.
#ifndef HAKMEM_ALLOCATOR_TESTS_OPAQUE_H_
#define HAKMEM_ALLOCATOR_TESTS_OPAQUE_H_

namespace hakmem {

// The value, of which the compiler now knows nothing; nor of what memory holds.
template <typename T>
T Opaque(T value) {
  __asm__ volatile("" : "+r"(value) : : "memory");
  return value;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_TESTS_OPAQUE_H_
