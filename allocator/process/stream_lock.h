// libc's lock of its list of streams, which fork takes.
//
// Owns: nothing. Called by: frontend, around a fork. Thread-safety: the thread
// that forks.
//
// A thread in fflush(NULL) has this lock and waits for streams, whose users may
// be allocating. So it comes before every lock of hakmem's, or a fork would
// wait for itself: for this lock, whose holder waits for who waits for hakmem.
#ifndef HAKMEM_ALLOCATOR_PROCESS_STREAM_LOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_STREAM_LOCK_H_

namespace hakmem {

// Nothing is taken while the process has one thread, which may hold the lock
// itself: it may fork in a signal handler. False then.
bool LockStreamList();
// In the parent, if LockStreamList has taken it.
void UnlockStreamList();
// In the child, likewise. libc does the same, but where the process had one
// thread when fork was called, and a handler of fork made the second.
void ResetStreamList();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_STREAM_LOCK_H_
