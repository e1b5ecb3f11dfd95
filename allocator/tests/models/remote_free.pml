// One block of an owner's heap, freed by two threads at once: by the owner,
// which marks it with a plain store, and by others, which mark it with one
// exchange (docs/decisions/0008).
//
// Models: Allocator::FreeOwn, TryFreeRemote, MarkLive, FreeSlabBlock;
//   ThreadHeap::TryPop, TryPush, Drain, File, Unqueue, TryDrainForOwner.
// Bounds: one block; two frees of its first life by any two of the owner and
//   two other threads; then two more lives, each freed rightly by anybody.
// Order: sequentially consistent, which for one byte is coherence.
//
// Proves, when the owner alone files its parcels:
//   - no two callers hold the block at once;
//   - two frees by others in one life: the second finds out by its exchange;
//   - in the end the double free has been found, whoever it was.
// With others that file for the owner, or threads without a heap, a free that
// falls between the owner's load and its store is not found: see the limits.
// With check_header_on_reuse (hardened, debug) still no two callers hold it.
//
// prove:
// prove: OTHERS_FILE CHECK_ON_REUSE
// prove: DIRECT CHECK_ON_REUSE
// limit: OTHERS_FILE
// limit: DIRECT
// mutation: PLAIN_REMOTE_STORE
// mutation: EXCHANGE_UNCHECKED
// mutation: FILE_UNCHECKED
// mutation: OWN_FREE_UNCHECKED
// mutation: OTHERS_FILE CHECK_ON_REUSE PLAIN_FILING
// mutation: DIRECT CHECK_ON_REUSE PLAIN_DIRECT

mtype = { FREE, LIVE, QUEUED };

mtype header = LIVE;
byte loaded = 0;   // how often the block is in the owner's loaded magazine,
byte behind = 0;   // in what others can reach: magazines behind it, slabs
byte mailbox = 0;  // and in parcels on their way
bool lock = false; // of the owner's heap

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
    mailbox++
  }
}

// FreeOwn.
inline free_own(first) {
  atomic { within_life(first); seen = header };
#ifndef OWN_FREE_UNCHECKED
  if
  :: seen != LIVE -> report()
  :: else
  fi;
#endif
#ifdef CHECK_ON_REUSE
  header = QUEUED;  // while it is cleared (hardening.h, HD3)
#endif
  header = FREE;
  loaded++
}

// Unqueue by the owner, then TryPush.
inline file_own() {
  mailbox--;
  seen = header;
#ifndef FILE_UNCHECKED
  if
  :: seen != QUEUED -> report()
  :: else
  fi;
#endif
  header = FREE;
  loaded++
}

// Unqueue for the owner, then PushBehind.
inline file_for_owner() {
  mailbox--;
#if defined(CHECK_ON_REUSE) && !defined(PLAIN_FILING)
  atomic {
    seen = header;
    if
    :: seen == QUEUED -> header = FREE
    :: else -> report()
    fi
  };
#else
  seen = header;
  if
  :: seen != QUEUED -> report()
  :: else
  fi;
  header = FREE;
#endif
  behind++
}

active proctype Owner() {
  mtype seen;
  {
end:
    do
    :: atomic { excess > 0 -> excess-- }; free_own(true)
    :: mailbox > 0 -> LOCK;
       do
       :: mailbox > 0 -> file_own()
       :: else -> break
       od;
       UNLOCK
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
    od
  } unless { caught || late }
}

#ifdef OTHERS_FILE
// TryDrainForOwner.
active proctype Drainer() {
  mtype seen;
  {
end:
    do
    :: mailbox > 0 -> LOCK;
       do
       :: mailbox > 0 -> file_for_owner()
       :: else -> break
       od;
       UNLOCK
    od
  } unless { caught || late }
}
#endif

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
