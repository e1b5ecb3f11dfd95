#ifndef HAKMEM_ALLOCATOR_TESTS_FORK_EARLY_H_
#define HAKMEM_ALLOCATOR_TESTS_FORK_EARLY_H_

#include <pthread.h>

// Its handlers of fork hold it from prepare to parent and child.
pthread_mutex_t* EarlyMutex();
// They do nothing any more: what allocates cannot be called in signal handlers.
void StopEarlyHandlers();

#endif  // HAKMEM_ALLOCATOR_TESTS_FORK_EARLY_H_
