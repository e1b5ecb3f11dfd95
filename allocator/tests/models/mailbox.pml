// Parcels on their way: filled by a sender, pushed to the owner's mailbox by
// compare-and-swap, taken all together by one exchange, filed, and pushed back
// to the sender's stack of returned parcels.
//
// Models: ParcelStack::Push, TakeAll; ThreadHeap::TakeParcel, Send, Drain,
//   ReturnParcel.
// Bounds: two senders with one parcel each, which each sends it twice; the
//   owner and a third thread drain.
// Order: sequentially consistent, but for the words of a parcel: a push that is
//   not a release may be seen before them (RELAXED_PUSH).
//
// Proves:
//   - a parcel is in one place (M1): it is never pushed, taken or filled while
//     it is somewhere else;
//   - who takes a parcel sees what its sender wrote into it;
//   - in the end every parcel that was sent has been filed, once, and is home.
//
// prove:
// mutation: STORE_PUSH
// mutation: LOAD_AND_CLEAR
// mutation: RELAXED_PUSH
// mutation: POP_ONE_WITHOUT_LOCK

#define SENDERS 2
#define SENDS 2
#define NONE 255

mtype = { HOME, OPEN, PUSHED, TAKEN };

// Parcel p belongs to sender p.
mtype place[SENDERS] = HOME;
byte next[SENDERS];
byte content[SENDERS];  // number of the sending; 0: nothing
byte sent[SENDERS];
byte filed[SENDERS];

byte mailbox = NONE;
byte returned[SENDERS] = NONE;
bool lock = false;  // of the owner's heap

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

// ParcelStack::Push.
#ifdef STORE_PUSH
#define PUSH(head, p) seen = head; next[p] = seen; head = p
#else
#define PUSH(head, p) \
  seen = head; \
  do \
  :: next[p] = seen; \
     atomic { \
       if \
       :: head == seen -> head = p; break \
       :: else -> seen = head \
       fi \
     } \
  od
#endif

// ParcelStack::TakeAll.
#ifdef LOAD_AND_CLEAR
#define TAKE_ALL(head) list = head; head = NONE
#else
#define TAKE_ALL(head) atomic { list = head; head = NONE }
#endif

proctype Sender(byte me) {
  byte seen;
  byte list;
  byte own = me;  // free_parcels_
  byte sending = 0;
  do
  :: sending < SENDS ->
     sending++;
     if
     :: own == NONE -> (returned[me] != NONE); TAKE_ALL(returned[me]); own = list
     :: else
     fi;
     assert(own == me);
     own = NONE;
     atomic { assert(place[me] == HOME); place[me] = OPEN };
#ifdef RELAXED_PUSH
     atomic { place[me] = PUSHED; sent[me]++ };
     PUSH(mailbox, me);
     content[me] = sending
#else
     content[me] = sending;
     atomic { place[me] = PUSHED; sent[me]++ };
     PUSH(mailbox, me)
#endif
  :: else -> break
  od
}

// Drain, by the owner or for it.
proctype Drainer() {
  byte seen;
  byte list;
  byte p;
end:
  do
  :: mailbox != NONE ->
#ifdef POP_ONE_WITHOUT_LOCK
     list = mailbox;
     if
     :: list == NONE -> goto end
     :: else
     fi;
     p = next[list];
     atomic {
       if
       :: mailbox == list -> mailbox = p; next[list] = NONE
       :: else -> goto end
       fi
     };
#else
     LOCK;
     TAKE_ALL(mailbox);
#endif
     do
     :: list == NONE -> break
     :: else ->
        p = list;
        atomic { assert(place[p] == PUSHED); place[p] = TAKEN };
        list = next[p];
        atomic { filed[p]++; assert(content[p] == filed[p]) };
        atomic { place[p] = HOME };
        PUSH(returned[p], p)
     od;
#ifndef POP_ONE_WITHOUT_LOCK
     UNLOCK
#else
     skip
#endif
  od
}

init {
  byte i;
  atomic {
    run Sender(0);
    run Sender(1);
    run Drainer();
    run Drainer()
  };
  timeout ->
  for (i : 0 .. SENDERS - 1) {
    assert(sent[i] == SENDS && filed[i] == SENDS && place[i] == HOME)
  }
}
