// A fork, which stops all heaps' locks by one gate, against threads that take
// one of them, try one, or hold one and try another.
//
// Models: GatedLock::Lock, TryLock, WaitAtGate, AwaitFree, CloseGate, OpenGate;
//   HeapRegistry::PrepareFork, ParentAfterFork.
// Bounds: two locks; two threads, which each take locks twice; two forks by a
//   third, the second maybe in a signal handler that has interrupted it inside.
// Order: sequentially consistent, as the code asks for. CloseGate's store is a
//   step that may come late in one mutation.
//
// Proves:
//   - while the forking thread has seen each lock free and the gate is closed,
//     nobody else is inside one (GL1);
//   - one thread at most is inside a lock;
//   - nobody waits for ever.
//
// prove:
// mutation: LATE_STORE
// mutation: GATE_READ_FIRST
// mutation: NO_SECOND_LOOK
// mutation: TRY_IGNORES_GATE
// mutation: AWAITS_ONE

#define LOCKS 2
#define TURNS 2
#define NOBODY 0
#define FORKER 9

byte holder[LOCKS];
byte inside[LOCKS];
byte gate = NOBODY;       // as all see it
bool stopped = false;     // between the last look at a lock and OpenGate
bool closing = false;     // the store of CloseGate, not seen yet

#define TAKE(l, who) atomic { holder[l] == NOBODY -> holder[l] = who }
#define LEAVE(l) holder[l] = NOBODY

inline touch(l, who) {
  atomic {
    inside[l]++;
    assert(inside[l] == 1);
    assert(!stopped || who == FORKER)
  };
  inside[l]--
}

// GatedLock::Lock.
inline take(l, who) {
#ifdef GATE_READ_FIRST
  seen = gate;
  TAKE(l, who);
#else
  TAKE(l, who);
  seen = gate;
#endif
  // WaitAtGate. The kernel puts to sleep who still finds the same word.
  do
  :: seen == NOBODY || seen == who -> break
  :: else ->
     LEAVE(l);
     gate != seen;
     TAKE(l, who);
#ifdef NO_SECOND_LOOK
     seen = NOBODY
#else
     seen = gate
#endif
  od
}

// GatedLock::TryLock.
inline try_take(l, who) {
  atomic {
    got = holder[l] == NOBODY;
    if
    :: got -> holder[l] = who
    :: else
    fi
  };
#ifndef TRY_IGNORES_GATE
  if
  :: got ->
     seen = gate;
     if
     :: seen == NOBODY || seen == who
     :: else -> LEAVE(l); got = false
     fi
  :: else
  fi
#endif
}

active [2] proctype Thread() {
  byte turns = 0;
  byte seen, first;
  bool got, holds;
  do
  :: turns == TURNS -> break
  :: else ->
     turns++;
     if
     :: first = 0
     :: first = 1
     fi;
     if
     :: take(first, _pid + 1);
        touch(first, _pid + 1);
        holds = true
     :: holds = false
     fi;
     if
     :: skip
     :: try_take(1 - first, _pid + 1);
        if
        :: got -> touch(1 - first, _pid + 1); LEAVE(1 - first)
        :: else
        fi
     fi;
     if
     :: holds -> LEAVE(first)
     :: else
     fi
  od
}

// GatedLock::AwaitFree.
inline await_free(l) {
  if
  :: holder[l] == NOBODY || holder[l] == FORKER
  :: else -> TAKE(l, FORKER); LEAVE(l)
  fi
}

inline fork() {
#ifdef LATE_STORE
  closing = true;
#else
  gate = FORKER;
#endif
  await_free(0);
#ifndef AWAITS_ONE
  await_free(1);
#endif
  stopped = true;
  // Handlers of fork allocate.
  if
  :: holder[0] == FORKER
  :: else -> take(0, FORKER); touch(0, FORKER); LEAVE(0)
  fi;
  stopped = false;
#ifdef LATE_STORE
  closing = false;
#endif
  gate = NOBODY
}

active proctype Forker() {
  byte seen;
  fork();
  if
  :: skip
  :: // A handler of a signal interrupts it inside, and forks.
     take(0, FORKER);
     fork();
     touch(0, FORKER);
     LEAVE(0)
  fi
}

#ifdef LATE_STORE
active proctype Buffer() {
end:
  do
  :: atomic { closing -> gate = FORKER; closing = false }
  od
}
#endif
