/* The scaling protocol of docs/decentralized.md stated a second time, in Promela.
 *
 * Three operators with nodes 0 1 | 2 3 | 4 5; even nodes are keepers, odd ones start as copies of
 * their keeper and are used once. One process does one step at a time, so a stored state is a state
 * of the pipeline. This checks it, and both count the same states:
 *
 *   spin -a docs/decentralized.pml && gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m100000
 *   penstock decentralized check --full --no-reuse
 *
 * The assertions say that nothing reaches a stopped node, that keepers stay, that a pipeline in
 * which nothing can happen without a decision is quiet, and that its nodes then know each other.
 * No run without new decisions is endless:
 *
 *   spin -a -DLIVENESS docs/decentralized.pml && gcc -O2 -DNP -DNOREDUCE -o pan pan.c && ./pan -l
 *
 * Rules can be left out: spin -a -DNO_FIFO docs/decentralized.pml, and likewise NO_ACKS,
 * ONE_BRANCH_ACK, NO_TO_DELETE, NO_KEEPER, SIDES_BY_SETS, START_WITHOUT_DEPARTED, DRAIN_TO_ANY.
 */
#define N 6
#ifndef ACTIONS
#define ACTIONS 2
#endif
#ifndef RECORDS
#define RECORDS 1
#endif

#define FREE 0
#define IDLE 1
#define ACTIVE 2
#define DUPLICATING 3
#define STOPPING 4
#define STOPPED 5

#define RECORD 0
#define DUPLICATION 1
#define DUPLICATION_ACK 2
#define START 3
#define DELETION 4
#define DELETION_ACK 5

#define BIT(n) (1 << (n))
#define IN(n, set) (((set) >> (n)) & 1)
#define KEEPER(n) ((n) % 2 == 0)
#define INSIDE(n) (phase[n] == ACTIVE || phase[n] == DUPLICATING)
#define WORKS(n) (INSIDE(n) || phase[n] == STOPPING)

byte phase[N], succs[N], preds[N], awaited[N], pending[N];
byte departed_s[N], departed_p[N], add_s[N], add_p[N], del_s[N], del_p[N];
byte inbox[N];          /* messages on the way to each node */
byte messages;          /* messages on the way to any node */
byte under_way;         /* actions that have not ended */
byte in_pipeline;       /* records */
chan ch[36] = [6] of { byte, byte, byte };
hidden byte i, m, a, b, is_acked, is_successor, is_known;

inline send(from, to, kind, first, second) {
  ch[(from) * N + (to)]!kind, first, second;
  inbox[to]++; messages++
}

inline send_information(from, kind, content) {
  for (i : 0 .. N - 1) {
    if
    :: IN(i, succs[from] | preds[from]) -> send(from, i, kind, content, 0)
    :: else
    fi
  }
}

inline clear(n) {
  succs[n] = 0; preds[n] = 0; awaited[n] = 0; pending[n] = 0;
  departed_s[n] = 0; departed_p[n] = 0;
  add_s[n] = 0; add_p[n] = 0; del_s[n] = 0; del_p[n] = 0
}

/* Algorithms 6 and 10. */
inline complete(n) {
  if
  :: awaited[n] == 0 && phase[n] == DUPLICATING ->
     phase[n] = ACTIVE;
#ifndef START_WITHOUT_DEPARTED
     send(n, n + 1, START, succs[n] | departed_s[n], preds[n] | departed_p[n]);
#else
     send(n, n + 1, START, succs[n], preds[n]);
#endif
     departed_s[n] = 0; departed_p[n] = 0
  :: awaited[n] == 0 && phase[n] == STOPPING && pending[n] == 0 ->
     phase[n] = STOPPED; clear(n); under_way--
  :: else
  fi
}

inline expect_acks(n) {
#ifndef NO_ACKS
  awaited[n] = succs[n] | preds[n]
#else
  awaited[n] = 0
#endif
}

/* Algorithm 4: the copy of a keeper is the next node. */
inline duplicate(n) {
  phase[n + 1] = IDLE; under_way++;
  phase[n] = DUPLICATING; expect_acks(n);
  send_information(n, DUPLICATION, BIT(n + 1));
  complete(n)
}

/* Algorithm 8. */
inline stop(n) {
  phase[n] = STOPPING; under_way++; expect_acks(n);
  send_information(n, DELETION, succs[n] | preds[n]);
  complete(n)
}

inline find_side(from, n) {
#ifndef SIDES_BY_SETS
  is_known = 1; is_successor = ((from) / 2 > (n) / 2)
#else
  is_successor = IN(from, succs[n]); is_known = is_successor || IN(from, preds[n])
#endif
}

inline acknowledge(n, to, kind) {
  is_acked = 1;
#ifdef ONE_BRANCH_ACK
  is_acked = is_known && !is_successor;
#endif
#ifdef NO_ACKS
  is_acked = 0;
#endif
  if
  :: is_acked -> send(n, to, kind, 0, 0)
  :: else
  fi
}

/* Algorithm 5. */
inline note_duplication(from, n) {
  find_side(from, n);
  if
  :: is_known && phase[n] == IDLE && is_successor -> add_s[n] = add_s[n] | a
  :: is_known && phase[n] == IDLE && !is_successor -> add_p[n] = add_p[n] | a
  :: is_known && INSIDE(n) && is_successor -> succs[n] = succs[n] | a
  :: is_known && INSIDE(n) && !is_successor -> preds[n] = preds[n] | a
  :: else
  fi;
  acknowledge(n, from, DUPLICATION_ACK)
}

/* Algorithm 9. */
inline note_deletion(from, n) {
  find_side(from, n);
  if
#ifndef NO_TO_DELETE
  :: is_known && phase[n] == IDLE && is_successor -> del_s[n] = del_s[n] | BIT(from)
  :: is_known && phase[n] == IDLE && !is_successor -> del_p[n] = del_p[n] | BIT(from)
#endif
  :: is_known && phase[n] != IDLE ->
     if
     :: phase[n] == DUPLICATING && IN(n + 1, a) && is_successor ->
        departed_s[n] = departed_s[n] | BIT(from)
     :: phase[n] == DUPLICATING && IN(n + 1, a) && !is_successor ->
        departed_p[n] = departed_p[n] | BIT(from)
     :: else
     fi;
     if
     :: is_successor -> succs[n] = succs[n] & ~BIT(from)
     :: else -> preds[n] = preds[n] & ~BIT(from)
     fi
  :: else
  fi;
  acknowledge(n, from, DELETION_ACK)
}

/* Algorithm 7. */
inline start(n) {
  succs[n] = (a | add_s[n]) & ~del_s[n];
  preds[n] = (b | add_p[n]) & ~del_p[n];
  add_s[n] = 0; add_p[n] = 0; del_s[n] = 0; del_p[n] = 0;
  phase[n] = ACTIVE; under_way--
}

inline deliver(from, n) {
  ch[(from) * N + (n)]?m, a, b;
  inbox[n]--; messages--;
  if
  :: m == RECORD -> pending[n]++
  :: m == DUPLICATION -> note_duplication(from, n)
  :: m == DELETION -> note_deletion(from, n)
  :: m == START -> start(n)
  :: m == DUPLICATION_ACK || m == DELETION_ACK ->
     awaited[n] = awaited[n] & ~BIT(from); complete(n)
  fi;
  m = 0; a = 0; b = 0
}

#define CAN_DELIVER(from, n) \
  (phase[n] > FREE && phase[n] < STOPPED && nempty(ch[(from) * N + (n)]))

#ifdef NO_FIFO
#define TURN(from, n) \
  :: d_step { CAN_DELIVER(from, n) && len(ch[(from) * N + (n)]) > 1 -> \
     ch[(from) * N + (n)]?m, a, b; ch[(from) * N + (n)]!m, a, b; m = 0; a = 0; b = 0 }
#else
#define TURN(from, n)
#endif

#define DELIVER(from, n) \
  :: d_step { CAN_DELIVER(from, n) -> deliver(from, n) } TURN(from, n)

#ifdef DRAIN_TO_ANY
#define ROUTE(n, to) IN(to, succs[n])
#else
#define ROUTE(n, to) ((INSIDE(n) && IN(to, succs[n])) || (phase[n] == STOPPING && KEEPER(to)))
#endif

#define PROCESS(n, to) \
  :: d_step { WORKS(n) && pending[n] > 0 && ROUTE(n, to) -> \
     send(n, to, RECORD, 0, 0); pending[n]--; complete(n) }

#define DELIVER_RESULT(n) \
  :: d_step { WORKS(n) && pending[n] > 0 -> in_pipeline--; pending[n]--; complete(n) }

/* What comes from outside is progress; a cycle without it would be a livelock. */
#ifdef LIVENESS
#define PROGRESS(kind, n) ; progress_##kind##_##n: skip
#else
#define PROGRESS(kind, n)
#endif

#define DECIDE_DUPLICATION(n) \
  :: d_step { phase[n] == ACTIVE && phase[n + 1] == FREE && under_way < ACTIONS -> duplicate(n) } \
     PROGRESS(duplicate, n)

#ifdef NO_KEEPER
#define CAN_STOP(n) true
#else
#define CAN_STOP(n) (!KEEPER(n))
#endif

#define DECIDE_STOP(n) \
  :: d_step { phase[n] == ACTIVE && CAN_STOP(n) && under_way < ACTIONS -> stop(n) } \
     PROGRESS(stop, n)

#define OFFER(n) \
  :: d_step { INSIDE(n) && in_pipeline < RECORDS -> in_pipeline++; pending[n]++ } \
     PROGRESS(offer, n)

#define LOST(n) (phase[n] == STOPPED && inbox[n] > 0)
#define RESTLESS(n) (phase[n] == IDLE || phase[n] == DUPLICATING || phase[n] == STOPPING || pending[n] > 0)
#define CAN_PROCESS(n) (WORKS(n) && pending[n] > 0)
#define ANY(P) (P(0) || P(1) || P(2) || P(3) || P(4) || P(5))
#define LIVES(n) (phase[n] == ACTIVE)
#define NODES(op) ((LIVES(2 * (op)) << (2 * (op))) | (LIVES(2 * (op) + 1) << (2 * (op) + 1)))
#define WRONG(n, before, after) (LIVES(n) && (preds[n] != (before) || succs[n] != (after)))
#define DISAGREE \
  (WRONG(0, 0, NODES(1)) || WRONG(1, 0, NODES(1)) \
   || WRONG(2, NODES(0), NODES(2)) || WRONG(3, NODES(0), NODES(2)) \
   || WRONG(4, NODES(1), 0) || WRONG(5, NODES(1), 0))

active proctype pipeline() {
  d_step {
    phase[0] = ACTIVE; phase[2] = ACTIVE; phase[4] = ACTIVE;
    succs[0] = BIT(2); preds[2] = BIT(0); succs[2] = BIT(4); preds[4] = BIT(2)
  }
end: /* all names are used; the assertions below say that it is quiet */
  do
  DELIVER(0, 2) DELIVER(0, 3) DELIVER(1, 2) DELIVER(1, 3)
  DELIVER(2, 0) DELIVER(2, 1) DELIVER(3, 0) DELIVER(3, 1)
  DELIVER(2, 4) DELIVER(2, 5) DELIVER(3, 4) DELIVER(3, 5)
  DELIVER(4, 2) DELIVER(4, 3) DELIVER(5, 2) DELIVER(5, 3)
  DELIVER(0, 1) DELIVER(2, 3) DELIVER(4, 5)
  PROCESS(0, 2) PROCESS(0, 3) PROCESS(1, 2) PROCESS(1, 3)
  PROCESS(2, 4) PROCESS(2, 5) PROCESS(3, 4) PROCESS(3, 5)
  DELIVER_RESULT(4) DELIVER_RESULT(5)
  DECIDE_DUPLICATION(0) DECIDE_DUPLICATION(2) DECIDE_DUPLICATION(4)
  DECIDE_STOP(0) DECIDE_STOP(1) DECIDE_STOP(2) DECIDE_STOP(3) DECIDE_STOP(4) DECIDE_STOP(5)
  OFFER(0) OFFER(1)
  :: ANY(LOST) -> assert(false)                        /* nothing reaches a stopped node */
  :: phase[0] == STOPPED || phase[2] == STOPPED || phase[4] == STOPPED -> assert(false)
  :: messages == 0 && !ANY(CAN_PROCESS) && ANY(RESTLESS) -> assert(false)   /* an action ends */
  :: messages == 0 && !ANY(RESTLESS) && DISAGREE -> assert(false)
  od
}
