"""Hosts of a running pipeline, with queries that are made up and batches by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engines.spark.test_engine import Query
from tests.tools.by_hand import ByHand

from penstock.core.decision import Move
from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.events import RunningEvent
from penstock.engines.port import HOSTS, Plan
from penstock.engines.spark import engine as engine_module
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.host_fleet import HostFleet
from penstock.engines.spark.io.commands import read_command, write_command
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, RescaleError
from penstock.pipelines.description import describe
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful import counts
from penstock.reports.pipeline_text import graph_text
from penstock.reports.run_statement import start_statement
from penstock.reports.status_text import status_text
from penstock.runs.pipeline_changes import DESCRIPTION
from penstock.runs.preparation import RunObjects
from penstock.runs.run_directory import SPEC_FILE
from penstock.runs.run_status import read_status
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import SparkSpec


def words(hosts: Hosts | None, slices: int = 4, max_replicas: int = 4) -> Pipeline:
    pipeline = Pipeline("words", hosts=hosts)
    pipeline.topic("words", "word string", external=True)
    options = {"slices": slices, "max_replicas": max_replicas}
    pipeline.sliced("words", "counted", name="count", **options)(counts(by="word"))  # type: ignore[arg-type]
    return pipeline


@pytest.fixture
def engine(layout: RunLayout, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkEngine]:
    monkeypatch.setattr(engine_module, "make_query", lambda *_, **__: Query)
    monkeypatch.setattr(engine_module, "MAX_START_S", 0.1)
    pipeline = words(Hosts(start=2, most=3, share=0.5))
    engine = SparkEngine(None, pipeline, layout)  # type: ignore[arg-type]
    engine.start()
    yield engine


def test_hosts_give_replicas_and_pins_and_moves_change_them(
    engine: SparkEngine, layout: RunLayout
) -> None:
    command = read_command(layout, "count")
    assert (command.replicas, command.hosts, command.share) == (2, ("h1", "h2"), 0.5)
    assert command.pins == {0: 0, 1: 0, 2: 1, 3: 1}
    engine.apply(Plan(moves=(Move("count/0", "h1", "new-1"), Move("count/2", "h2", "new-1"))))
    command = read_command(layout, "count")
    assert (command.replicas, command.hosts) == (3, ("h1", "h2", "h3"))
    assert command.pins == {0: 2, 1: 0, 2: 2, 3: 1}
    assert engine.trackers["count"].requested == 3
    (event,) = (e for e in engine.status().events if isinstance(e, RunningEvent))
    assert (event.operator, event.replicas, event.before) == (HOSTS, 3, 2)
    with pytest.raises(RescaleError, match="4 hosts are needed, at most 3 exist"):
        engine.apply(Plan(moves=(Move("count/2", "h3", "new-1"),)))
    with pytest.raises(InputError, match="is on host h3, not on h1"):
        engine.apply(Plan(moves=(Move("count/2", "h1", "h2"),)))
    with pytest.raises(InputError, match="this pipeline scales by moves of slices"):
        engine.apply(Plan(replicas={"count": 2}))
    assert read_command(layout, "count") == command


def test_a_new_start_continues_with_the_placement(engine: SparkEngine, layout: RunLayout) -> None:
    engine.apply(Plan(moves=(Move("count/0", "h1", "new-1"),)))
    again = SparkEngine(None, engine.pipeline, layout)  # type: ignore[arg-type]
    again.start()
    assert read_command(layout, "count").hosts == ("h1", "h2", "h3")
    # another number of slices is another operator; a stale table is not used
    other = SparkEngine(None, words(Hosts(start=1, most=4), slices=5), layout)  # type: ignore[arg-type]
    other._fleet.begin()
    assert other._fleet.count_replicas("count") == 1


def test_moved_slices_stay_without_hosts_and_after_a_new_start(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "make_query", lambda *_, **__: Query)
    monkeypatch.setattr(engine_module, "MAX_START_S", 0.1)
    engine = SparkEngine(None, words(None), layout, initial={"count": 2})  # type: ignore[arg-type]
    engine.start()
    engine.apply(Plan(moves=(Move("count/3", "count/0", "count/1"),)))
    engine.apply(Plan(replicas={"count": 3}, moves=(Move("count/1", "count/0", "count/2"),)))
    assert read_command(layout, "count").pins == {3: 1, 1: 2}
    again = SparkEngine(None, words(None), layout)  # type: ignore[arg-type]
    again.start()
    assert read_command(layout, "count").pins == {3: 1, 1: 2}


def test_slices_run_on_their_hosts_and_their_use_is_recorded(layout: RunLayout) -> None:
    pipeline = words(Hosts(start=2, most=3, share=0.5))
    hand = ByHand(layout.run, pipeline, "count")
    engine = SparkEngine(None, pipeline, layout)  # type: ignore[arg-type]
    engine._fleet.begin()
    engine._monitor.track(pipeline.operators["count"], 2)
    write_command(layout, "count", engine._fleet.make_command("count"))
    sizes = []
    for number in range(3):
        hand.put([{"word": f"w{i}"} for i in range(50)])
        end = {"at": {"words": 50 * (number + 1)}, "skips": {}}
        plan = hand.mind().plan({"at": dict(hand.at), "skips": {}}, end)
        hand.sink.commit([hand.task(task) for task in plan.tasks], number)
        hand.batch, hand.at = number + 1, end["at"]  # type: ignore[assignment]
        record: Any = hand.log.get(number)
        assert [(task.host, task.slices) for task in record.tasks] == [
            ("h1", (0, 1)),
            ("h2", (2, 3)),
        ]
        for task in record.tasks:
            assert len(task.slice_cpu_s) == len(task.slice_bytes_in) == 2
            assert min(task.slice_bytes_in) > 0 < min(task.slice_bytes_out)
            assert sum(task.slice_cpu_s) <= task.cpu_s
        sizes.append(sum(sum(task.slice_state_bytes) for task in record.tasks))
    assert 0 == sizes[0] < sizes[1]
    engine._monitor.update()
    snapshot = engine.observe()
    assert sorted(snapshot.hosts) == ["h1", "h2"]
    assert sorted(snapshot.hosts["h2"].slices) == ["count/2", "count/3"]
    assert snapshot.hosts["h1"].load > 0
    assert sum(p.memory for h in snapshot.hosts.values() for p in h.slices.values()) > 0
    assert len(snapshot.operators["count"].extra["slice_cpu"]) == 4  # type: ignore[arg-type]


def test_hosts_of_a_batch_longer_than_a_window_keep_their_load(layout: RunLayout) -> None:
    fleet = HostFleet(words(Hosts(start=1, most=3), slices=1), layout)
    fleet.begin()
    busy = OperatorSnapshot(name="count", parallelism=1, extra={"slice_cpu": (0.6,)})
    silent = OperatorSnapshot(name="count", parallelism=1)
    loads = []
    for operator, waiting in ((busy, 5), (silent, 5), (silent, 0), (silent, 5)):
        tracker: Any = SimpleNamespace(records=[], offered=9, taken=9 - waiting)
        loads.append(fleet.observe({"count": operator}, {"count": tracker})["h1"].load)
    assert loads == [0.6, 0.6, 0.0, 0.0]


@pytest.mark.parametrize(
    ("hosts", "options", "problem"),
    [
        (Hosts(start=0), {}, "hosts.start: must be a whole number of at least 1"),
        (Hosts(start=9), {}, "hosts.start: must be at most 8, got 9"),
        (Hosts(share=0.0), {}, "hosts.share: must be above 0"),
        (Hosts(start=8, most=8), {"slices": 4}, "at most the number of slices"),
        (Hosts(most=6), {"slices": 8}, "count.max_replicas: must be at least 6"),
    ],
)
def test_wrong_hosts_are_refused(hosts: Hosts, options: Any, problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        words(hosts, **options).check()
    assert problem in str(wrong.value)


def test_a_pipeline_with_hosts_runs_under_a_policy_of_hosts() -> None:
    objects = RunObjects(pipeline=words(Hosts(start=2, most=3)))
    prepared = prepare_spark_run(SparkSpec(pipeline="words", policy="enforcer"), objects)
    assert prepared.policy.name == "enforcer"
    shown = "2 at the start, at most 3"
    assert f"  hosts      {shown}" in start_statement(prepared, Path("runs/words"))
    assert f"hosts: {shown}" in list(graph_text(prepared.pipeline))
    with pytest.raises(InputError, match="ds2 decides about operators"):
        prepare_spark_run(SparkSpec(pipeline="words", policy="ds2"), objects)
    with pytest.raises(InputError, match="enforcer decides about hosts"):
        spec = SparkSpec(pipeline="words", policy="enforcer")
        prepare_spark_run(spec, RunObjects(pipeline=words(None)))


def test_the_status_of_a_run_shows_its_hosts(engine: SparkEngine, layout: RunLayout) -> None:
    (layout.run / SPEC_FILE).write_text("")
    (layout.run / DESCRIPTION).write_text(json.dumps(describe(engine.pipeline)))
    engine.apply(Plan(moves=(Move("count/0", "h1", "new-1"),)))
    status = read_status(layout.run)
    assert status.hosts == {"h1": ("count/1",), "h2": ("count/2", "count/3"), "h3": ("count/0",)}
    text = status_text(status, 0.0)
    assert "3 hosts, each 0.5 of a core (emulated)\n  h1: 1 slices of count" in text
