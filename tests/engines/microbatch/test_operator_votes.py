"""Adding up votes: bounds, the keeper, several batches, what the next batch sees."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.vote_count import VoteCount
from penstock.engines.microbatch.batch_record import (
    BatchRecord,
    TaskRecord,
    read_record,
    write_record,
)
from penstock.engines.microbatch.operator_votes import (
    VoteReader,
    count_replicas,
    count_votes,
    with_vote,
)
from penstock.engines.microbatch.replica_vote import (
    ReplicaMemory,
    ReplicaView,
    ReplicaVote,
    VotingRules,
)

RULES = VotingRules(max_replicas=6, interval_s=5, drain_s=2)
TASK = TaskRecord(rows_in=5, rows_out=5, busy_s=0.5, cpu_s=None, began=0.0, ended=1.0)


def vote(change: int, load: float = 10.0) -> ReplicaVote:
    return ReplicaVote(
        change=change, load=load, capacity=20.0, siblings=2, probability=0.5, draw=0.1
    )


def record(*changes: int | None, batch: int = 3, waiting: int | None = 30) -> BatchRecord:
    """A batch with a task for each change; None: it did not vote."""
    tasks = tuple(
        replace(
            TASK,
            vote=None if change is None else vote(change),
            memory=ReplicaMemory(since=float(index), siblings=len(changes)),
        )
        for index, change in enumerate(changes)
    )
    return BatchRecord(
        batch=batch,
        start={"a": 100},
        end={"a": 120},
        planned_at=1.0,
        committed_at=2.0,
        tasks=tasks,
        waiting=waiting,
    )


@pytest.mark.parametrize(
    ("changes", "replicas"),
    [
        ((None, None), 2),
        ((1, 0), 3),
        ((0, -1), 1),
        ((0, -1, -1), 1),
        ((3, 3), 6),
        ((2, None, -1), 4),
    ],
)
def test_the_next_batch_has_the_sum(changes: tuple[int | None, ...], replicas: int) -> None:
    assert count_replicas(record(*changes), RULES) == replicas


@given(
    changes=st.lists(st.integers(-1, 13), min_size=1, max_size=9),
    low=st.integers(1, 4),
    more=st.integers(0, 8),
)
def test_bounds_hold_for_any_votes(changes: list[int], low: int, more: int) -> None:
    rules = replace(RULES, min_replicas=low, max_replicas=low + more)
    replicas = count_replicas(record(*changes), rules)
    assert low <= replicas <= low + more
    assert replicas == min(low + more, max(low, len(changes) + sum(changes)))


@given(
    loads=st.lists(st.floats(0, 100), min_size=1, max_size=8),
    batch=st.integers(0, 99),
)
def test_the_keeper_never_stops(loads: list[float], batch: int) -> None:
    siblings = len(loads)
    voted = []
    for index, load in enumerate(loads):
        memory = ReplicaMemory(since=0.0, siblings=siblings, arrived=5 * load, speed=50.0)
        seen = ReplicaView(
            rules=RULES,
            operator="map",
            index=index,
            siblings=siblings,
            planned_at=5.0,
            rows=0,
            arrived=0,
            left=0,
            memory=memory,
        )
        voted.append(with_vote(TASK, seen, batch))
    assert voted[0].vote is not None
    assert voted[0].vote.change >= 0
    done = replace(record(), tasks=tuple(voted))
    assert 1 <= count_replicas(done, RULES) <= RULES.max_replicas


def test_an_operator_that_a_change_would_stop_keeps_its_replicas() -> None:
    fixed = replace(RULES, is_fixed=True)
    assert count_replicas(record(2, 2), fixed) == 2
    assert count_votes([record(2, 2)], fixed, 2) == VoteCount(before=2, after=2, is_fixed=True)


def test_votes_of_several_batches_are_counted_together() -> None:
    records = [record(None, None), record(3, 3), record(None), record(0, 0, -1)]
    votes = count_votes(records, RULES, 5)
    assert (votes.before, votes.after) == (2, 2)
    assert (votes.voters, votes.copies, votes.stops, votes.proposal) == (5, 6, 1, 7)
    assert (votes.load, votes.capacity, votes.probability) == (10.0, 20.0, 0.5)


def test_without_a_vote_nothing_changes() -> None:
    assert count_votes([record(None)], RULES, 4) == VoteCount(before=4, after=4)


# --- what the planner of the next batch reads


def reader(*records: BatchRecord) -> VoteReader:
    votes = VoteReader("map", RULES, is_even=True)
    for each in records:
        votes.add(each)
    return votes


def test_before_the_first_batch_the_command_counts() -> None:
    assert reader().replicas(3) == 3
    assert reader().replicas(9) == 6
    assert reader(record(1, 1)).replicas(3) == 4


def test_records_without_tasks_are_no_batches() -> None:
    assert reader(record(1, 1), replace(record(), tasks=())).replicas(1) == 4


def test_replicas_see_arrivals_since_the_batch_before() -> None:
    # 30 waited and 20 were taken, so 10 were left; now 25 wait, and 5 were dropped meanwhile
    views = reader(record(1, 0)).views(3, planned_at=7.0, rows=15, dropped=5, waiting=25)
    assert [(seen.arrived, seen.left, seen.rows) for seen in views] == [(20, 10, 15)] * 3
    assert [seen.memory.since if seen.memory else None for seen in views] == [0.0, 1.0, None]
    assert [seen.index for seen in views] == [0, 1, 2]
    # of the second between plan and commit they worked half
    assert [seen.lost_s for seen in views] == [0.5, 0.5, None]


@pytest.mark.parametrize("before", [None, 30])
def test_what_waits_may_be_unknown_after_a_restart(before: int | None) -> None:
    waiting = None if before is not None else 25
    votes = reader(record(0, waiting=before))
    (seen,) = votes.views(1, planned_at=7.0, rows=15, dropped=0, waiting=waiting)
    assert seen.arrived == 15


def test_idle_replicas_get_a_batch_in_which_they_may_stop() -> None:
    votes = reader(record(0, 0))
    assert votes.is_idle_due(2, 5.0)
    assert not votes.is_idle_due(2, 4.9)
    assert not votes.is_idle_due(1, 99.0)
    assert not reader().is_idle_due(2, 99.0)


# --- records on disk


def test_votes_survive_in_records() -> None:
    kept = record(1, None)
    assert read_record(write_record(kept)) == kept


def test_a_run_with_a_controller_writes_what_earlier_versions_read() -> None:
    plain = replace(record(), tasks=(TASK,))
    assert b"vote" not in write_record(plain)
    assert b"memory" not in write_record(plain)
    assert read_record(write_record(plain)) == plain
