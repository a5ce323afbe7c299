"""The enforcer drives hosts, with batches by hand instead of Spark's: hosts grow, then shrink."""

import time
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.engines.spark.test_engine import Query
from tests.tools.by_hand import ByHand

from penstock.control.decider import Decider
from penstock.control.execution import Execution
from penstock.core.policies.enforcer import POLICY
from penstock.engines.spark import engine as engine_module
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import NotReadyError
from penstock.pipelines import cpu_clock
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State

#: Processor seconds of a row.
ROW_S = 0.001


def counted() -> Pipeline:
    """Numbers the rows of each slice; their cost is only counted, so that no test waits for it."""
    pipeline = Pipeline("counted", hosts=Hosts(start=1, most=6))
    pipeline.topic("rows", "key long", external=True)
    pipeline.topic("out", "slice long, n long")
    options = {"key": "key", "state": "n long", "slices": 6, "max_replicas": 6}

    @pipeline.sliced("rows", "out", **options)  # type: ignore[arg-type]
    def number(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
        cpu_clock._emulated_s += ROW_S * batch.num_rows
        of_slice = {"key": pa.array([-1], pa.int64())}
        (latest,) = state.get(of_slice)["n"].to_pylist()
        numbers = [(latest or 0) + n for n in range(1, batch.num_rows + 1)]
        state.put(of_slice | {"n": pa.array(numbers[-1:], pa.int64())})
        slices = pa.array([state.slice] * batch.num_rows, pa.int64())
        return {"slice": slices, "n": numbers, "_event": batch["_event"]}

    return pipeline


def test_hosts_grow_and_shrink_with_the_load_and_state_moves_along(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "make_query", lambda *_, **__: Query)
    monkeypatch.setattr(engine_module, "MAX_START_S", 0.05)
    pipeline = counted()
    hand = ByHand(layout.run, pipeline, "number")
    timing = BatchTiming(batch_s=0.1, min_interval_s=0.0, window_s=0.6)
    engine = SparkEngine(None, pipeline, layout, timing=timing)  # type: ignore[arg-type]
    engine.start()
    decider = Decider(POLICY, POLICY.params.parse({"hold_s": 0.3, "grace_s": 0.6}, ""), None)
    execution, planner = Execution(engine), BatchPlanner(layout, "number")
    batches, began = count(), time.monotonic()
    offset: dict[str, Any] = {"at": dict(hand.at), "skips": {}}
    keys = list(range(16, 40))
    homes: list[dict[str | None, tuple[int, ...]]] = []  # slices by host, of every batch
    put_at = 0.0
    while (at := time.monotonic() - began) < 120:  # 6 s on a quiet machine
        has_grown = max(map(len, homes), default=0) >= 3
        rate = 480 if at > 1.5 and not has_grown else 30
        # rows in proportion to the time that passed: a slow machine has the same load
        hand.put([{"key": key} for key in keys * max(1, round(rate * (at - put_at) / len(keys)))])
        put_at = at
        end = planner.next_offset(offset)
        if end != offset:
            tasks = planner.plan(offset, end).tasks
            number = next(batches)
            hand.sink.commit([hand.task(task) for task in tasks], number)
            record = hand.log.get(number)
            assert record is not None
            homes.append({task.host: task.slices for task in record.tasks})
            offset = end
        if has_grown and len(homes[-1]) < max(map(len, homes)):
            break
        engine.advance(0.1)
        try:
            snapshot = replace(engine.observe(), at=at)
        except NotReadyError:
            continue
        decision = decider.decide(snapshot)
        if execution.apply_decision(decision, snapshot.at).applied:
            decider.note_applied(decision)
    assert len(homes[0]) == 1
    assert max(map(len, homes)) >= 3
    assert len(homes[-1]) < max(map(len, homes))
    assert all(sorted(s for own in home.values() for s in own) == list(range(6)) for home in homes)
    rows = list(hand.out("out"))
    for slice in range(6):
        numbers = sorted(row["n"] for row in rows if row["slice"] == slice)
        assert numbers == list(range(1, len(numbers) + 1)) != []
