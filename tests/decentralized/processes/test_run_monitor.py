"""The monitor adds up what nodes report; the result states the figures."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.decentralized.processes.node_action import NodeAction
from penstock.decentralized.processes.run_monitor import RunMonitor
from penstock.decentralized.processes.run_result import ProcessRunResult, percentiles
from penstock.decentralized.processes.run_spec import ProcessRunSpec

SPEC = ProcessRunSpec(operators=2, min_actions=1, capacity=10)
ACTION = NodeAction(
    node="parse-1",
    operator="parse",
    kind="duplication",
    at_s=0.5,
    took_s=0.1,
    copies=1,
    neighbours=3,
)


def status(
    processed: Sequence[int] = (),
    *,
    received: int | None = None,
    phase: str = "active",
    queue: int = 0,
    messages: dict[str, int] | None = None,
    actions: Sequence[NodeAction] = (),
) -> dict[str, Any]:
    """Return the report of a node."""
    work = {
        "received": len(processed) if received is None else received,
        "processed": list(processed),
        "latencies_s": [],
        "counts": {},
    }
    return {
        "phase": phase,
        "queue": queue,
        "messages": messages or {},
        "strangers": 0,
        "actions": [action.to_json() for action in actions],
        "work": work,
    }


def monitored() -> RunMonitor:
    """Two seconds of a run: 28 records, two instances of parse and one of count."""
    monitor = RunMonitor(SPEC)
    monitor.note_status("source-1", "source", status(range(28), received=0))
    monitor.note_status("parse-1", "parse", status(range(0, 28, 2), messages={"Duplication": 3}))
    monitor.note_status("parse-2", "parse", status(range(1, 28, 2), queue=2, phase="stopping"))
    monitor.note_status("parse-3", "parse", status(phase="idle"))
    monitor.note_status("count-1", "count", status(range(28), phase="duplicating"))
    monitor.note_status("sink-1", "sink", status(range(27), received=28))
    return monitor


def test_a_sample_counts_instances_by_what_they_do() -> None:
    sample = monitored().sample(2.0, is_loaded=True)
    parse, count = sample.operators
    assert (parse.name, parse.active, parse.starting, parse.stopping) == ("parse", 1, 1, 1)
    assert (count.active, count.starting, count.stopping) == (1, 0, 0)
    assert (sample.offered, parse.load, count.load) == (14, 14, 14)
    # 14 records/s for instances that should use 0.7 of 10 records/s each
    assert (parse.ideal, count.ideal) == (2, 2)
    assert (parse.instances, parse.queue, sample.messages, sample.processes) == (2, 2, 3, 6)
    assert (sample.sent, sample.delivered) == (28, 27)


def test_a_sample_begins_where_the_last_one_ended() -> None:
    monitor = monitored()
    monitor.sample(2.0, is_loaded=True)
    monitor.note_status("parse-1", "parse", status([28], messages={"Duplication": 5}))
    monitor.note_end("parse-2")
    sample = monitor.sample(4.0, is_loaded=True)
    assert (sample.offered, sample.operators[0].load, sample.messages) == (0, 0.5, 2)
    assert sample.operators[0].stopping == 0
    assert monitor.messages == {"Duplication": 5}


def result_of(monitor: RunMonitor, **changes: Any) -> ProcessRunResult:
    fields: dict[str, Any] = {
        "spec": SPEC,
        "seconds": 2.0,
        "sent": monitor.ledger.sent,
        "accounts": tuple(monitor.ledger.accounts()),
        "actions": (ACTION,),
        "messages": monitor.messages,
        "samples": (monitor.sample(2.0, is_loaded=True),),
        "peak_processes": 6,
        "started_processes": 6,
        "latencies_s": (0.1, 0.3),
        "has_right_counts": True,
        "wrong_views": (),
        "strangers": 0,
    }
    return ProcessRunResult(**fields | changes)


def test_an_instance_with_two_copies_has_decided_once() -> None:
    monitor = monitored()
    monitor.sample(2.0, is_loaded=True)
    twice = replace(ACTION, copies=2)
    stopped = replace(ACTION, kind="deletion", copies=0)
    monitor.note_status("parse-1", "parse", status(actions=[twice, stopped], messages={"Ack": 9}))
    sample = monitor.sample(3.0, is_loaded=True)
    parse, count = sample.operators
    assert (parse.deciders, parse.copies, parse.stops) == (2, 2, 1)
    # the messages of a node are totals: three were reported before
    assert parse.messages == 9 - 3 == sample.messages
    assert (count.deciders, count.copies, count.messages) == (0, 0, 0)
    assert monitor.sample(4.0, is_loaded=True).operators[0].deciders == 0


def test_a_result_names_every_problem() -> None:
    result = result_of(monitored(), actions=(), has_right_counts=False, wrong_views=("parse-1",))
    assert result.problems == (
        "sink lost 1: 27",
        "the counts at the sink are wrong",
        "wrong neighbours: parse-1",
        "0 scaling actions, --min-actions is 1",
    )
    data = result.to_json()
    assert data["is_exactly_once"] is False
    assert data["records"] == {
        "sent": 28,
        "processed": {"parse": 28, "count": 28, "sink": 27},
        "lost": 1,
        "repeated": 0,
    }


def test_the_figures_of_a_result() -> None:
    monitor = monitored()
    monitor.note_status("sink-1", "sink", status([27]))
    result = result_of(monitor)
    assert result.problems == ()
    assert result.accuracies == [2 / 2, 1 / 2]
    # 14 records/s: two instances absorb 20, one absorbs 10
    assert result.ideal_throughput == pytest.approx((1 + 10 / 14) / 2)
    data = result.to_json()
    assert data["messages"]["expected"] == 2 * 3 + 1
    assert data["actions"]["total"] == data["actions"]["duplications"] == 1
    assert data["instances"] == [{"parse": 2, "count": 1}]


def test_percentiles_of_nothing_are_unknown() -> None:
    assert set(percentiles([]).values()) == {None}
    assert percentiles(range(1, 101)) == {"mean": 50.5, "p05": 5, "p50": 50, "p95": 95}
