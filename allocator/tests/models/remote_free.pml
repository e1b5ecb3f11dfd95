// One block of an owner's heap, freed by two threads at once: by the owner,
// which marks it with a plain store, and by others, which mark it with one
// exchange (docs/decisions/0008).
//
// Models: Allocator::FreeOwn, TryFreeRemote, MarkLive, FreeSlabBlock;
//   BlockCache::TryPop, TryPush; HeapStore::Dequeue, TryFile;
//   ThreadHeap::LoadForeign.
// Bounds: one block; two frees of its first life by any two of the owner and
//   two other threads; then two more lives, each freed rightly by anybody.
// Order: sequentially consistent, which for one byte is coherence.
//
// A queued block is in an outbox or in the exchange. It leaves these by
// Dequeue: to its owner's slabs, or (REUSE) to whoever hands it out next.
//
// Proves, where no block leaves while the owner is between the load and the
// store of a free of it (SHORT_FREE):
//   - no two callers hold the block at once;
//   - two frees by others in one life: the second finds out by its exchange;
//   - in the end the double free has been found, whoever it was.
// Else, a free that falls between the owner's load and its store is not found:
// see the limits. With check_header_on_reuse (hardened, debug), and so without
// REUSE, still no two callers hold it.
//
// prove: SHORT_FREE
// prove: SHORT_FREE REUSE
// prove: CHECK_ON_REUSE
// prove: DIRECT CHECK_ON_REUSE
// limit:
// limit: REUSE
// limit: DIRECT
// mutation: SHORT_FREE PLAIN_REMOTE_STORE
// mutation: SHORT_FREE EXCHANGE_UNCHECKED
// mutation: SHORT_FREE DEQUEUE_UNCHECKED
// mutation: SHORT_FREE REUSE DEQUEUE_UNCHECKED
// mutation: SHORT_FREE OWN_FREE_UNCHECKED
// mutation: CHECK_ON_REUSE PLAIN_DEQUEUE
// mutation: DIRECT CHECK_ON_REUSE PLAIN_DIRECT

mtype = { FREE, LIVE, QUEUED };

mtype header = LIVE;
byte loaded = 0;   // how often the block is in the owner's loaded magazine,
byte behind = 0;   // in what others can reach: slabs, magazines behind it,
byte queued = 0;   // and in outboxes and the exchange
bool lock = false; // of the owner's heap
bool freeing = false;  // the owner is between load and store

bool caught = false;  // a report ends the process
bool late = false;    // so does what is out of bounds
byte holders = 0;     // callers of malloc that hold the block
byte lives = 1;
byte passed = 0;      // frees of the first life by others that found nothing
byte excess = 2;      // frees of the first life that are still to begin

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

inline report() { caught = true }

// A second free that comes when the block has been handed out anew is a free of
// the new block: nothing can tell.
inline within_life(first) {
  if
  :: first && lives > 1 -> late = true
  :: else
  fi
}

// TryFreeRemote; `first`: of the first life.
inline free_remote(first) {
  seen = header;
  if
  :: seen != LIVE -> report()
  :: else
  fi;
#ifdef PLAIN_REMOTE_STORE
  within_life(first);
  header = QUEUED;
#else
  atomic { within_life(first); seen = header; header = QUEUED };
#ifndef EXCHANGE_UNCHECKED
  if
  :: seen != LIVE -> report()
  :: else
  fi;
#endif
#endif
  atomic {
    if
    :: first && lives == 1 -> passed++; assert(passed <= 1)
    :: else
    fi;
    queued++
  }
}

// FreeOwn.
inline free_own(first) {
  atomic { within_life(first); seen = header; freeing = true };
#ifndef OWN_FREE_UNCHECKED
  if
  :: seen != LIVE -> report()
  :: else
  fi;
#endif
#ifdef CHECK_ON_REUSE
  header = QUEUED;  // while it is cleared (hardening.h, HD3)
#endif
  atomic { header = FREE; freeing = false };
  loaded++
}

// Whether a block may leave its outbox now.
#ifdef SHORT_FREE
#define LEAVES (queued > 0 && !freeing)
#else
#define LEAVES (queued > 0)
#endif

// Dequeue: Queued becomes Free.
inline dequeue() {
#if defined(CHECK_ON_REUSE) && !defined(PLAIN_DEQUEUE)
  atomic {
    seen = header;
    if
    :: seen == QUEUED -> header = FREE
    :: else -> report()
    fi
  }
#else
#ifdef SHORT_FREE
  atomic {
#endif
  seen = header;
#ifndef DEQUEUE_UNCHECKED
  if
  :: seen != QUEUED -> report()
  :: else
  fi;
#endif
  header = FREE
#ifdef SHORT_FREE
  }
#endif
#endif
}

active proctype Owner() {
  mtype seen;
  {
end:
    do
    :: atomic { excess > 0 -> excess-- }; free_own(true)
    :: loaded == 0 && behind > 0 -> LOCK; loaded = behind; behind = 0; UNLOCK
    :: loaded > 0 && lives < 3 ->
       lives++;
       loaded--;
#ifdef CHECK_ON_REUSE
       if
       :: header != FREE -> report()
       :: else
       fi;
       header = QUEUED;  // until its bounds are there
#endif
       header = LIVE;
       atomic { holders++; assert(holders <= 1) }
    :: atomic { holders > 0 -> holders-- }; free_own(false)
    od
  } unless { caught || late }
}

active [2] proctype Other() {
  mtype seen;
  {
end:
    do
    :: atomic { excess > 0 -> excess-- }; free_remote(true)
    :: atomic { holders > 0 -> holders-- }; free_remote(false)
    :: atomic { LEAVES -> queued-- };  // TryFile
       LOCK; dequeue(); behind++; UNLOCK
#ifdef REUSE
    :: atomic { LEAVES && lives < 3 -> queued-- };  // LoadForeign, then malloc
       dequeue();
       lives++;
       header = LIVE;
       atomic { holders++; assert(holders <= 1) }
#endif
    od
  } unless { caught || late }
}

#ifdef DIRECT
// FreeSlabBlock, by a thread that gets no heap.
active proctype WithoutHeap() {
  mtype seen;
  {
end:
    do
    :: atomic { excess > 0 -> excess-- };
#ifdef CHECK_ON_REUSE
       atomic { within_life(true); seen = header; header = QUEUED };
#else
       atomic { within_life(true); seen = header; header = FREE };
#endif
       if
       :: seen != LIVE -> report()
       :: else
       fi;
#if defined(CHECK_ON_REUSE) && !defined(PLAIN_DIRECT)
       atomic {
         if
         :: header == QUEUED -> header = FREE
         :: else -> report()
         fi
       };
#else
       header = FREE;
#endif
       LOCK; behind++; UNLOCK
    od
  } unless { caught || late }
}
#endif

#ifndef CHECK_ON_REUSE
// Nothing moves any more.
active proctype End() {
  timeout -> assert(caught || late)
}
#endif
