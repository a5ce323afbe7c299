"""Decentralized runs as run directories: states, votes, and instances that have all ended."""

from pathlib import Path

from penstock.control.loop import LoopSchedule
from penstock.core.instance_decision import DecentralizedParams
from penstock.decentralized.run_record import (
    PROCESSES,
    OperatorInstances,
    PipelineRecords,
    make_spec,
    record_run,
)
from penstock.runs.run_directory import read_run


def instances(name: str, **changes: int) -> OperatorInstances:
    """Return an operator with four active instances at 40 of 100 records/s, and changes to it."""
    counts = {"active": 4, "starting": 0, "stopping": 0, "waiting": 3, "messages": 0}
    votes = {"voters": 0, "copies": 0, "stops": 0}
    return OperatorInstances(name=name, load=160.0, **{**counts, **votes, **changes})


def test_running_requested_and_wanted_are_apart_and_votes_are_decisions(tmp_path: Path) -> None:
    spec = make_spec(PROCESSES, "a > b", "wave", 1, {})
    schedule = LoopSchedule(duration_s=10, interval_s=1)
    parse = instances("a", active=3, starting=2, stopping=1, voters=2, copies=2, stops=1)
    with record_run(tmp_path / "run", spec, DecentralizedParams(), schedule, 100.0) as record:
        record.write(
            1.0, [parse, instances("b")], PipelineRecords(offered=9, processed=6, waiting=3)
        )
        ended = [instances(name, active=0, waiting=0) for name in ("a", "b")]
        record.write(2.0, ended, PipelineRecords(offered=9, processed=9, waiting=0), is_over=True)
    run = read_run(tmp_path / "run")
    first, last = run.journal.ticks
    assert (first.status.running["a"], first.status.requested["a"]) == (4, 5)
    target = first.decision.targets["a"]
    assert (target.current, target.wanted) == (4, 5)
    assert first.applied and not last.applied
    assert first.snapshot.operators["b"].upstream == ("a",)
    assert first.snapshot.operators["a"].extra["instances"]["ideal"] == 3  # 160 / (0.7 x 100)
    assert first.status.replica_s == {"a": 4.0, "b": 4.0}
    assert last.status.running == {"a": 0, "b": 0}
    assert run.result is not None and run.result.scores.processed_records == 9
