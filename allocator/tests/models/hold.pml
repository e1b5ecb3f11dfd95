// HeapSystem::Hold: who finds a heap's id in a unit's record, read without a
// lock, and takes the heap's lock, against the thread that makes the heap.
// Stores become visible in any order that their own orders permit: nothing is
// assumed of the locks that the maker took in between.
// prove:
// mutation: NO_COUNT
// mutation: RELAXED_COUNT

int heap_count = 0
bool heap_is_made = false  // what the heap's memory holds, its lock, too
int record = 0             // the owner of a unit

active proctype Maker() {
  bool made, counted, recorded
#ifdef RELAXED_COUNT
#define MAY_COUNT true
#else
#define MAY_COUNT made
#endif
  do
  :: !made -> atomic { heap_is_made = true; made = true }
  :: MAY_COUNT && !counted -> atomic { heap_count = 1; counted = true }
  :: !recorded -> atomic { record = 1; recorded = true }
  :: made && counted && recorded -> break
  od
}

// Loads may be early: a count from before the record makes it read again.
active proctype Holder() {
  if
  :: record == 1 ->
#ifndef NO_COUNT
    heap_count >= 1
#endif
    assert(heap_is_made)
  :: record == 0 -> skip
  fi
}
