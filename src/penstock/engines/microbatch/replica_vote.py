"""The vote of one replica that decides alone: what it sees, remembers and decides. Pure.

A replica sees the queue in front of it when its batch is planned, its rows, its busy time and the
number of its siblings. Its load is its share of the rows that arrive, and of the rows that are left
waiting, spread over the time in which they should be worked off. Arrivals alone would not do: by
algorithm 2 of the paper one replica with up to 1.4 times its capacity never duplicates itself, and
its queue would grow without end. Its capacity is what it processes in full batches, with the time
between the plan and the commit of a batch in which it cannot work.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from penstock.core.instance_decision import DecentralizedParams, decide_alone, probability
from penstock.engines.microbatch.full_batch import BEFORE_PLAN_S, count_full_rows

#: Weight of the last batch in the mean time without work.
_NEW = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class VotingRules:
    """How the replicas of one operator decide; saved as JSON with the operator's config."""

    min_replicas: int = 1
    max_replicas: int
    #: Time between two decisions of a replica.
    interval_s: float
    #: Time in which rows that wait should be worked off.
    drain_s: float
    #: Planned time of a full batch.
    batch_s: float = 1.0
    #: Parameters of the decision; the capacity is measured if it is None.
    r: float = 0.7
    up: float = 0.8
    down: float = 0.6
    capacity: float | None = None
    #: Seed of the draws.
    seed: str = ""
    #: Whether the replicas never change, because a change would stop the operator.
    is_fixed: bool = False

    def within_bounds(self, replicas: int) -> int:
        """Return a number of replicas that the operator may have."""
        return max(1, self.min_replicas, min(self.max_replicas, replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMemory:
    """What a replica has counted since its last decision; its next batch begins with it."""

    #: Wall clock of the plan since which it counts, and its siblings, itself included, since then.
    since: float
    siblings: int
    #: Its share of the rows that arrived, the rows that it processed, and the time for them.
    arrived: float = 0.0
    rows: int = 0
    busy_s: float = 0.0
    #: Rows per busy second, and seconds of a batch without work, as last measured.
    speed: float | None = None
    lost_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaView:
    """What a replica sees at the begin of a batch."""

    rules: VotingRules
    operator: str
    index: int
    siblings: int
    planned_at: float
    #: Rows of the batch, rows that came since the batch before, and rows left waiting behind it.
    rows: int
    arrived: int
    left: int
    #: Whether each replica gets the same share of the rows; else its share is that of its rows.
    is_even: bool = True
    #: Seconds of its last batch, from plan to commit, in which it did not work; None if unknown.
    lost_s: float | None = None
    memory: ReplicaMemory | None = None

    @property
    def is_keeper(self) -> bool:
        """Whether it never stops."""
        return self.index == 0

    def share(self, rows: int) -> float:
        """Return the share of the operator's rows that is its own."""
        return 1 / self.siblings if self.is_even or not self.rows else rows / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaVote:
    """What a replica decided: copies of itself, -1 to stop, or 0; and the numbers behind it."""

    change: int
    #: Records/s.
    load: float
    capacity: float
    siblings: int
    #: The p of the decision, and the random number that it was compared with, if there was any.
    probability: float
    draw: float | None = None


def update_memory(view: ReplicaView, rows: int, busy_s: float) -> ReplicaMemory:
    """Return the memory after one more batch.

    Another number of siblings is another load, so it counts from this batch on; and so does a
    replica whose clock was set back.
    """
    memory = view.memory or ReplicaMemory(since=view.planned_at, siblings=0)
    lost_s = _mix(memory.lost_s, view.lost_s)
    if memory.siblings != view.siblings or memory.since > view.planned_at:
        speed = rows / busy_s if rows and busy_s > 0 else memory.speed
        return ReplicaMemory(
            since=view.planned_at, siblings=view.siblings, speed=speed, lost_s=lost_s
        )
    all_rows, all_busy_s = memory.rows + rows, memory.busy_s + busy_s
    return replace(
        memory,
        arrived=memory.arrived + view.share(rows) * view.arrived,
        rows=all_rows,
        busy_s=all_busy_s,
        speed=all_rows / all_busy_s if all_rows and all_busy_s > 0 else memory.speed,
        lost_s=lost_s,
    )


def _mix(before: float | None, now: float | None) -> float | None:
    if before is None or now is None:
        return before if now is None else now
    return before * (1 - _NEW) + now * _NEW


def compute_capacity(rules: VotingRules, memory: ReplicaMemory) -> float | None:
    """Return the records/s of a replica in full batches; None if nothing was measured.

    >>> rules = VotingRules(max_replicas=8, interval_s=5, drain_s=2)
    >>> memory = ReplicaMemory(since=0.0, siblings=1, speed=10.0, lost_s=0.1)
    >>> compute_capacity(rules, memory)
    8.0
    """
    if rules.capacity is not None or not memory.speed:
        return rules.capacity
    full_s = count_full_rows(memory.speed, rules.batch_s) / memory.speed
    return memory.speed * full_s / (full_s + max(0.0, memory.lost_s or 0.0) + BEFORE_PLAN_S)


def decide_vote(
    view: ReplicaView, memory: ReplicaMemory, share: float, draw: Callable[[], float]
) -> ReplicaVote | None:
    """Return the vote of a replica; None if its interval is not over or it knows no capacity."""
    rules, seconds = view.rules, view.planned_at - memory.since
    capacity = compute_capacity(rules, memory)
    if rules.is_fixed or seconds < rules.interval_s or not capacity:
        return None
    load = memory.arrived / seconds + share * view.left / rules.drain_s
    params = DecentralizedParams(r=rules.r, up=rules.up, down=rules.down)
    drawn: list[float] = []

    def note_draw() -> float:
        drawn.append(draw())
        return drawn[-1]

    change = decide_alone(
        load, view.siblings, capacity, params, is_keeper=view.is_keeper, draw=note_draw
    )
    return ReplicaVote(
        change=change,
        load=load,
        capacity=capacity,
        siblings=view.siblings,
        probability=probability(load, view.siblings, capacity, params.r),
        draw=drawn[0] if drawn else None,
    )


def make_draw(view: ReplicaView, batch: int) -> Callable[[], float]:
    """Return the random numbers of a replica in a batch; a repeated batch draws the same."""
    return Random(f"{view.rules.seed}/{view.operator}/{batch}/{view.index}").random


def end_batch(
    view: ReplicaView, batch: int, rows: int, busy_s: float
) -> tuple[ReplicaVote | None, ReplicaMemory]:
    """Return the vote at the end of a batch, if it is due, and what the replica remembers."""
    memory = update_memory(view, rows, busy_s)
    vote = decide_vote(view, memory, view.share(rows), make_draw(view, batch))
    if vote is None:
        return None, memory
    return vote, replace(memory, since=view.planned_at, arrived=0.0, rows=0, busy_s=0.0)
