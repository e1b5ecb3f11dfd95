// What the kernel told the process at its start (AT_PAGESZ and so on).
//
// Owns: where that lies. Called by: platform, process, stacks.
// Thread-safety: any thread, before libc is initialised, too; errno is left as
// it was.
//
// It is read where the kernel has put it, behind the environment on the first
// stack: getauxval and getpagesize may be others' (base/system_call.h).
#ifndef HAKMEM_ALLOCATOR_PLATFORM_AUXILIARY_VECTOR_H_
#define HAKMEM_ALLOCATOR_PLATFORM_AUXILIARY_VECTOR_H_

#include <cstddef>

namespace hakmem {

// The value of an entry; 0 if there is none.
unsigned long AuxiliaryValue(unsigned long type);

// The same from the words that begin with the count of the program's arguments;
// libc is asked if these are not as the kernel has left them. For tests.
unsigned long AuxiliaryValueAt(const unsigned long* start, unsigned long type);

// The environment at its start, null if that cannot be known.
char** FirstEnvironment();

// The kernel's page size.
std::size_t KernelPageBytes();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_AUXILIARY_VECTOR_H_
