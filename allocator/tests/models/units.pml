// A unit that goes from heap to heap through ACE, while another thread purges
// or unmaps what is free, and a stale pointer into it is freed once more.
//
// Models: Ace::GrantSlab, ReleaseSlab, TrimIfDue, UnmapCaches; UnitPool::TakeUnits,
//   Release, StartPurge, PurgeRun, PurgeTables, EndPurge, UnmapFree;
//   SlabStore::GrantNew, ClearHeaders, Release; Allocator::TryFreeRemote;
//   HeapStore::Dequeue.
// Bounds: one unit of two granules, in which class A has two blocks and class B
//   one; two heaps that have it three times together; one thread that purges
//   once, one that unmaps once; one stale free.
// Order: sequentially consistent. Headers and records are relaxed: their rows
//   in docs/memory_orders.md say what orders them.
//
// Proves:
//   - the unit is granted to one heap at a time;
//   - what was granted as known zero reads as zero until it is written;
//   - what is granted is neither purged nor unmapped: its user's data stay;
//   - a block's header and record are its heap's while it lives, so no valid
//     free is refused (A3);
//   - a header is 0 where no block starts (H1);
//   - a stale free is taken for a free only while a block lives there, and when
//     that is another heap's by then, filing finds it.
//
// prove:
// mutation: PURGED_WHILE_FREE
// mutation: RECORD_CLEARED_AFTER_RELEASE
// mutation: RELEASED_AS_CLEAN
// mutation: EXTENT_NOT_KEPT
// mutation: GRANT_WITHOUT_LOCK
// mutation: FILED_UNCHECKED

#define GRANTS 3
#define NOBODY 0

mtype = { NONE, FREE, LIVE, QUEUED };

// The unit.
mtype header[2] = NONE;
byte record = NOBODY;  // the owner
bool class_b;          // what the record says of the class
byte extent = 0;       // header_extent: granules whose headers may be written
byte content = 0;
// ACE's, under its lock.
bool lock = false;
bool is_free = true;
bool dirty = false;
bool mapped = true;

byte grants = 0;
byte holder = NOBODY;    // who holds the unit
bool live = false;       // whether a caller of malloc holds the block
bool freed_once = false; // a pointer to granule 0 may be stale
bool stale_taken = false; // what follows the stale free's exchange is its end

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

inline grant() {
#ifndef GRANT_WITHOUT_LOCK
  LOCK;
#endif
  if
  :: !mapped -> mapped = true; content = 0; is_free = true
  :: else
  fi;
  granted = is_free && grants < GRANTS;
  if
  :: granted ->
     is_free = false;
     known_zero = !dirty;
     dirty = false;
     atomic { grants++; assert(holder == NOBODY); holder = me }
  :: else
  fi;
#ifndef GRANT_WITHOUT_LOCK
  UNLOCK
#else
  skip
#endif
}

// GrantNew, and Take of the first block.
inline start_slab() {
  if
  :: extent > 0 -> header[0] = NONE
  :: else
  fi;
  if
  :: extent > 1 -> header[1] = NONE
  :: else
  fi;
  extent = 0;
  if
  :: used_b = false
  :: used_b = true
  fi;
  atomic { record = me; class_b = used_b };
  header[0] = FREE;
  if
  :: !used_b -> header[1] = FREE
  :: else
  fi
}

// The slab is empty.
inline release() {
#ifndef RECORD_CLEARED_AFTER_RELEASE
  record = NOBODY;
#endif
#ifndef EXTENT_NOT_KEPT
  extent = (used_b -> 1 : 2);
#endif
  holder = NOBODY;
  LOCK;
  is_free = true;
#ifndef RELEASED_AS_CLEAN
  dirty = true;
#endif
  UNLOCK;
#ifdef RECORD_CLEARED_AFTER_RELEASE
  record = NOBODY;
#endif
}

proctype Heap(byte me) {
  bool granted;
  bool known_zero;
  bool used_b;
  {
    do
    :: grants < GRANTS && (is_free || !mapped) ->
       grant();
       if
       :: granted ->
          start_slab();
          assert(!known_zero || content == 0);
          atomic { header[0] = LIVE; live = true };
          assert(mapped && (!known_zero || content == 0));
          content = me;
          assert(!used_b || header[1] == NONE);
          assert(mapped && content == me);
          // A valid free.
          assert(stale_taken || (record == me && header[0] == LIVE));
          atomic { !stale_taken -> header[0] = FREE; live = false; freed_once = true };
          release()
       :: else
       fi
    :: grants == GRANTS -> break
    od
  } unless { stale_taken }
}

// TrimIfDue: the unit is nobody's while the kernel takes its memory back, which is
// not done under the lock.
proctype Purger() {
  {
    LOCK;
    if
    :: dirty ->
       dirty = false;
#ifndef PURGED_WHILE_FREE
       is_free = false;
#endif
       UNLOCK;
       content = 0;
       header[0] = NONE;
       header[1] = NONE;
       LOCK;
       is_free = true
    :: else
    fi;
    UNLOCK
  } unless { stale_taken }
}

// UnmapCaches, before a call is given up.
proctype Unmapper() {
  {
    LOCK;
    if
    :: is_free ->
       mapped = false;
       dirty = false;
       is_free = false
    :: else
    fi;
    UNLOCK
  } unless { stale_taken }
}

// TryFreeRemote of a pointer that was freed before, by a third thread.
proctype Stale() {
  byte owner;
  mtype seen;
  freed_once;
  owner = record;
  seen = header[0];
  if
  :: owner == NOBODY || seen != LIVE -> goto reported
  :: else
  fi;
  atomic {
    seen = header[0];
    header[0] = QUEUED;
    if
    :: seen == LIVE -> assert(live && record == holder); stale_taken = true
    :: else -> stale_taken = true; goto reported
    fi
  };
  // Filed by `owner`.
#ifndef FILED_UNCHECKED
  if
  :: record != owner || header[0] != QUEUED -> goto reported
  :: else
  fi;
#endif
  // As good as a free of the block that lives there: of `owner`, in any case.
  assert(holder == owner);
reported:
  skip
}

init {
  atomic {
    run Heap(1);
    run Heap(2);
    run Purger();
    run Unmapper();
    run Stale()
  }
}
