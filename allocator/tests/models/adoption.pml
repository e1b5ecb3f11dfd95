// A heap whose thread exits and which another thread adopts, while others file
// its blocks and empty its magazines.
//
// Models: ThreadHeap::Leave, Abandon, Adopt, TryTrim, FlushWithinReach, FlushAll;
//   HeapStore::TryFile; HeapRegistry::Attach, Abandon.
// Bounds: one heap; two threads which each have it up to twice; two others,
//   which each file blocks once and then trim.
// Order: sequentially consistent. The locks order all else; abandoned_, relaxed,
//   is read where it counts under the heap's lock.
//
// Proves:
//   - a heap has one owner at most;
//   - the loaded magazines are touched by one thread at a time: by the owner,
//     without a lock, or by whoever has the lock of a heap without a thread;
//   - the registry's list holds the heap exactly when it is abandoned (N1);
//   - the slabs are touched by one thread at a time.
//
// prove:
// mutation: ADOPT_WITHOUT_LOCK
// mutation: ABANDON_BEFORE_LEAVE
// mutation: FLAG_READ_BEFORE_LOCK
// mutation: ATTACH_WITHOUT_REGISTRY
// mutation: FILE_WITHOUT_LOCK

#define OTHERS 2
#define OWNERSHIPS 2

bool registry = false;  // the registry's lock
bool lock = false;      // the heap's
bool listed = true;     // on the registry's list
bool abandoned = true;
byte owners = 0;
byte touching = 0;
byte in_slabs = 0;

#define LOCK(l) atomic { !l -> l = true }
#define UNLOCK(l) l = false

// Who reads or writes the loaded magazines.
inline touch_loaded() {
  atomic { touching++; assert(touching == 1) };
  touching--
}

// Who takes blocks from the slabs, or puts them back.
inline touch_slabs() {
  atomic { in_slabs++; assert(in_slabs == 1) };
  in_slabs--
}

// A slow path of the owner.
inline slow_path() {
  LOCK(lock);
  touch_slabs();
  touch_loaded();
  UNLOCK(lock)
}

// HeapRegistry::Attach. `adopted`: there was a heap.
inline attach() {
#ifndef ATTACH_WITHOUT_REGISTRY
  LOCK(registry);
#endif
  adopted = listed;
  if
  :: adopted ->
     assert(abandoned);
     listed = false;
#ifdef ADOPT_WITHOUT_LOCK
     abandoned = false;
#else
     LOCK(lock);
     abandoned = false;
     UNLOCK(lock);
#endif
     atomic { owners++; assert(owners == 1) }
  :: else
  fi;
#ifndef ATTACH_WITHOUT_REGISTRY
  UNLOCK(registry)
#else
  skip
#endif
}

// HeapRegistry::Abandon.
inline abandon() {
#ifdef ABANDON_BEFORE_LEAVE
  abandoned = true;
#endif
  touch_loaded();  // destructors, before the lock
  slow_path();     // Leave
  LOCK(registry);
  owners--;
  abandoned = true;
  assert(!listed);
  listed = true;
  UNLOCK(registry)
}

active [2] proctype Thread() {
  byte turns = 0;
  bool adopted;
  do
  :: turns < OWNERSHIPS ->
     turns++;
     attach();
     if
     :: adopted ->
        touch_loaded();
        if
        :: slow_path()
        :: skip
        fi;
        abandon()
     :: else
     fi
  :: else -> break
  od
}

active [OTHERS] proctype Other() {
  bool without_thread;
#ifdef FILE_WITHOUT_LOCK
  touch_slabs();
#else
  LOCK(lock);
  touch_slabs();
  UNLOCK(lock);
#endif
  without_thread = abandoned;  // as a hint
  if
  :: atomic { !lock -> lock = true };
#ifndef FLAG_READ_BEFORE_LOCK
     without_thread = abandoned;
#endif
     if
     :: without_thread -> touch_loaded()
     :: else
     fi;
     UNLOCK(lock)
  :: skip  // TryLock fails, or nobody trims now
  fi
}

active proctype End() {
  bool adopted;
  timeout ->
  attach();
  assert(adopted);
  slow_path()
}
