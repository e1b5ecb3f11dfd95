// The heap profile's sequence against a reader outside of the process: the
// memory of the writer's processor, where stores become visible in any order
// that its instructions permit. The reader's system calls are in order.
// prove:
// mutation: ACQUIRE_BEGIN
// mutation: RELAXED_END

int sequence = 0
int one = 0  // two words of the tables, equal but while they are changed
int other = 0

// A change. Each branch is a store that becomes visible.
active proctype Writer() {
  bool begun, one_seen, other_seen, ended
#ifdef ACQUIRE_BEGIN
  // An addition with acquire: what follows waits for its load alone.
#define MAY_CHANGE true
#else
  // A store and a release fence.
#define MAY_CHANGE begun
#endif
#ifdef RELAXED_END
#define MAY_END begun
#else
#define MAY_END (begun && one_seen && other_seen)
#endif
  do
  :: !begun -> atomic { sequence = 1; begun = true }
  :: MAY_CHANGE && !one_seen -> atomic { one = 1; one_seen = true }
  :: MAY_CHANGE && !other_seen -> atomic { other = 1; other_seen = true }
  :: MAY_END && !ended -> atomic { sequence = 2; ended = true }
  :: begun && one_seen && other_seen && ended -> break
  od
}

active proctype Reader() {
  int before, first, second, after
  before = sequence
  first = one
  second = other
  after = sequence
  if
  :: before == after && before % 2 == 0 -> assert(first == second)
  :: else -> skip
  fi
}
