// What any address is to hakmem, found out from the tables alone.
//
// Owns: nothing. Called by: reports, through the frontend. Thread-safety: any
// thread, signal handlers included: no lock is waited for, nothing allocates,
// and nothing outside of the mapped tables is read, whatever they hold.
// What other threads change meanwhile may be told as it was or as it is.
#ifndef HAKMEM_ALLOCATOR_CORE_FIND_BLOCK_H_
#define HAKMEM_ALLOCATOR_CORE_FIND_BLOCK_H_

#include "allocator/ace/ace.h"
#include "allocator/diag/address_facts.h"

namespace hakmem {

AddressFacts FindBlock(Ace& ace, Address address);

// The same, with what lies before and after the block.
Surroundings FindBlockAround(Ace& ace, Address address);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_FIND_BLOCK_H_
