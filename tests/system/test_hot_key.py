"""A hot key, from the records of batches to the sentence that people read. No Spark."""

from dataclasses import replace

import pytest
from tests.builders import snap
from tests.tools.recording import batch, task

from penstock.control.decider import Decider
from penstock.control.registry import builtin_policies
from penstock.core.decision import Decision
from penstock.core.guards import Guards
from penstock.core.snapshot import Snapshot
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_snapshot import OperatorWindow, build_operator_snapshot
from penstock.reports.decision_text import explain

SLICES = 8
POLICIES = builtin_policies()


def worked(loads: dict[int, float]) -> TaskRecord:
    """A task that spent so many seconds on each of its slices, 50 records a second."""
    seconds = sum(loads.values())
    done = task(rows=round(50 * seconds), busy_s=seconds)
    return replace(done, slices=tuple(loads), loads=tuple(loads.values()))


def batches(hot: float) -> list[BatchRecord]:
    """Two replicas, full all the time; slice 0 makes up a part of the work of the first."""
    rest = (1 - hot) / 3
    tasks = [
        worked({0: hot, 2: rest, 4: rest, 6: rest}),
        worked(dict.fromkeys((1, 3, 5, 7), 0.25)),
    ]
    return [batch(n, at=n * 1.3, took_s=1.2, tasks=tasks) for n in range(8)]


def seen(records: list[BatchRecord]) -> Snapshot:
    now = records[-1].committed_at
    sighting = OperatorWindow(
        name="count",
        upstream=(),
        max_replicas=8,
        requested=2,
        running=2,
        now=now,
        begin=0.0,
        batch_s=1.0,
        records=records,
        queues=[(now - 1, 3000.0), (now, 4000.0)],
    )
    return snap(build_operator_snapshot(sighting), at=now, offered=400.0)


def decided(policy: str, snapshot: Snapshot) -> Decision:
    return Decider(POLICIES[policy], guards=Guards()).decide(snapshot)


@pytest.mark.parametrize("policy", ["ds2", "threshold"])
def test_of_a_hot_key_people_are_told_that_scaling_will_not_help(policy: str) -> None:
    snapshot = seen(batches(hot=1.0))
    assert snapshot.operators["count"].useful_parallelism == 2
    decision = decided(policy, snapshot)
    target = decision.targets["count"]
    assert (target.current, target.wanted, target.reason) == (2, 2, "scaling-will-not-help")
    assert target.proposal > 2
    story = " ".join(explain(decision, snapshot, (), guarded=True).split())
    assert "count: stays at 2 replicas (scaling-will-not-help)" in story
    assert "bounds: " in story
    assert "one slice, or something beside the replicas, is the limit" in story


@pytest.mark.parametrize("policy", ["ds2", "threshold"])
def test_an_even_load_is_scaled(policy: str) -> None:
    snapshot = seen(batches(hot=0.25))
    assert snapshot.operators["count"].useful_parallelism == SLICES
    target = decided(policy, snapshot).targets["count"]
    assert target.wanted > 2
    assert target.reason != "scaling-will-not-help"
