"""Votes of single replicas: load, capacity, interval, draws."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.instance_decision import DecentralizedParams
from penstock.core.policies.decentralized import decentralized
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.microbatch.replica_vote import (
    ReplicaMemory,
    ReplicaView,
    VotingRules,
    decide_vote,
    end_batch,
    make_draw,
    update_memory,
)

RULES = VotingRules(max_replicas=8, interval_s=5, drain_s=2, seed="7/0")


def view(**fields: object) -> ReplicaView:
    known: dict[str, object] = {
        "rules": RULES,
        "operator": "map",
        "index": 1,
        "siblings": 2,
        "planned_at": 105.0,
        "rows": 100,
        "arrived": 100,
        "left": 0,
        "memory": ReplicaMemory(since=100.0, siblings=2, arrived=400, rows=400, busy_s=8.0),
    }
    return ReplicaView(**{**known, **fields})  # type: ignore[arg-type]


def test_a_load_is_the_share_of_arrivals_and_of_what_is_left() -> None:
    vote, _ = end_batch(view(left=40), batch=3, rows=50, busy_s=1.0)
    assert vote is not None
    # (400 + 100 / 2) rows in 5 s, and 40 / 2 rows to be worked off in 2 s
    assert vote.load == pytest.approx(450 / 5 + 10)
    # 50 rows per busy second; of its full batches of 1 s, 0.15 s before the plan are no work
    assert vote.capacity == pytest.approx(450 / 9 / 1.15)
    assert vote.siblings == 2


def test_where_keys_decide_the_share_is_that_of_its_rows() -> None:
    vote, _ = end_batch(view(is_even=False, left=40), batch=3, rows=75, busy_s=1.0)
    assert vote is not None
    assert vote.load == pytest.approx((400 + 75) / 5 + 0.75 * 40 / 2)


def test_time_without_work_lowers_the_capacity() -> None:
    seen = view(lost_s=0.85)
    vote, memory = end_batch(seen, batch=3, rows=50, busy_s=1.0)
    assert vote is not None
    assert vote.capacity == pytest.approx(450 / 9 / 2)
    # the mean moves half of the way to the last batch
    _, later = end_batch(replace(seen, lost_s=0.05, memory=memory), 4, rows=50, busy_s=1.0)
    assert later.lost_s == pytest.approx(0.45)


def test_a_given_capacity_replaces_the_measured_one() -> None:
    rules = replace(RULES, capacity=90.0)
    vote, _ = end_batch(view(rules=rules), batch=3, rows=50, busy_s=1.0)
    assert vote is not None
    assert vote.capacity == 90


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"planned_at": 104.9}, id="its interval is not over"),
        pytest.param({"memory": None}, id="it is new"),
        pytest.param({"siblings": 3}, id="the number of siblings has changed"),
        pytest.param({"planned_at": 90.0}, id="its clock was set back"),
        pytest.param({"rules": replace(RULES, is_fixed=True)}, id="its operator is fixed"),
    ],
)
def test_no_vote(fields: dict[str, object]) -> None:
    vote, memory = end_batch(view(**fields), batch=3, rows=50, busy_s=1.0)
    assert vote is None
    assert memory.speed == pytest.approx(50)


def test_a_replica_that_never_had_rows_knows_no_capacity() -> None:
    fresh = ReplicaMemory(since=90.0, siblings=2)
    assert end_batch(view(memory=fresh, rows=0, arrived=0), 3, rows=0, busy_s=0.0)[0] is None


def test_after_a_vote_it_counts_from_its_batch_on() -> None:
    vote, memory = end_batch(view(), batch=3, rows=50, busy_s=1.0)
    assert vote is not None
    assert (memory.since, memory.arrived, memory.rows, memory.busy_s) == (105.0, 0.0, 0, 0.0)
    assert memory.speed == pytest.approx(50)


def test_without_rows_it_remembers_its_capacity_and_stops() -> None:
    memory = ReplicaMemory(since=100.0, siblings=2, speed=50.0)
    idle = view(memory=memory, rows=0, arrived=0)
    vote, _ = end_batch(idle, batch=3, rows=0, busy_s=0.0)
    assert vote is not None
    assert (vote.load, vote.change, vote.probability) == (0.0, -1, -1.0)
    keeper, _ = end_batch(replace(idle, index=0), batch=3, rows=0, busy_s=0.0)
    assert keeper is not None
    assert keeper.change == 0


def test_a_queue_makes_a_single_replica_duplicate_itself() -> None:
    # by arrivals alone, floor(1.2 / 0.7 - 1) = 0: it would never do so
    alone = view(
        index=0,
        siblings=1,
        arrived=60,
        memory=ReplicaMemory(since=104.0, siblings=1, rows=40, busy_s=1.0),
        rules=replace(RULES, interval_s=1, capacity=50.0),
    )
    few, _ = end_batch(alone, batch=3, rows=50, busy_s=1.0)
    many, _ = end_batch(replace(alone, left=60), batch=3, rows=50, busy_s=1.0)
    assert few is not None
    assert many is not None
    assert few.load > few.capacity
    assert (few.change, many.change) == (0, 1)


@given(
    batch=st.integers(0, 1000),
    index=st.integers(0, 7),
    rows=st.integers(0, 500),
    left=st.integers(0, 500),
    busy_s=st.floats(0.01, 5),
)
def test_a_repeated_batch_votes_the_same(
    batch: int, index: int, rows: int, left: int, busy_s: float
) -> None:
    seen = view(index=index, siblings=8, left=left)
    seen = replace(seen, memory=replace(seen.memory, siblings=8))
    assert end_batch(seen, batch, rows, busy_s) == end_batch(seen, batch, rows, busy_s)


def test_draws_differ_by_seed_operator_batch_and_replica() -> None:
    seen = view()
    others = [
        replace(seen, rules=replace(RULES, seed="8/0")),
        replace(seen, operator="count"),
        replace(seen, index=2),
    ]
    drawn = [make_draw(each, 3)() for each in (seen, *others)] + [make_draw(seen, 4)()]
    assert len(set(drawn)) == 5


@given(
    load=st.floats(0, 2000),
    capacity=st.floats(1, 500),
    siblings=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_votes_are_those_of_the_policy_for_the_same_draws(
    load: float, capacity: float, siblings: int, seed: int
) -> None:
    """All replicas with the same load and capacity together are what the policy computes."""
    draw = Random(f"{seed}/0/map").random
    change = 0
    for index in range(siblings):
        seen = view(
            index=index,
            siblings=siblings,
            planned_at=101.0,
            left=0,
            rules=replace(RULES, interval_s=1, capacity=capacity),
        )
        memory = ReplicaMemory(since=100.0, siblings=siblings, arrived=load)
        vote = decide_vote(seen, memory, 1 / siblings, draw)
        assert vote is not None
        change += vote.change
    op = OperatorSnapshot(name="map", parallelism=siblings, input_rate=load * siblings)
    snapshot = Snapshot(at=0, operators={"map": op}, offered={"map": load * siblings})
    params = DecentralizedParams.parse({"capacity": capacity, "seed": seed}, "parameter")
    assert siblings + change == decentralized([snapshot], [], params).targets["map"].wanted


@given(rows=st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_a_memory_adds_up_batches(rows: list[int]) -> None:
    memory = ReplicaMemory(since=100.0, siblings=2)
    for number, count in enumerate(rows):
        memory = update_memory(
            view(planned_at=101.0 + number, memory=memory, arrived=2 * count), count, 0.1 * count
        )
    assert memory.rows == sum(rows)
    assert memory.arrived == pytest.approx(sum(rows))
    if sum(rows):
        assert memory.speed == pytest.approx(10)
