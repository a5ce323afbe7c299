"""Operators with Spark's own state on real Spark, repartitioned on the way, against DuckDB."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from tests.spark_engines import Started, until
from tests.system.test_operators import drained, rows
from tests.tools.native_rows import clicks_and_views, give, wrong

from penstock.engines.events import FailedEvent, StepEvent
from penstock.engines.port import Plan
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.native_state.rescaler import STEPS
from penstock.engines.spark.recovery.checkpoints import read_last_batch
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline

pytestmark = pytest.mark.spark


def change(engine: SparkEngine, **replicas: int) -> list[str]:
    """Ask for replicas and wait until they run; return the steps that it took."""
    engine.apply(Plan(replicas=replicas))
    steps: list[str] = []

    def there() -> bool:
        status = engine.status()
        events = status.events
        steps.extend(f"{e.operator} {e.step}" for e in events if isinstance(e, StepEvent))
        assert not [event for event in events if isinstance(event, FailedEvent)]
        return all(status.running[name] == k for name, k in replicas.items())

    until(engine, there)
    return steps


def test_windows_and_joins_are_right_while_their_state_is_dealt_anew(
    started: Started, layout: RunLayout
) -> None:
    pipeline = clicks_and_views()
    give(layout, pipeline, 0, 1000)
    engine = started.engine(pipeline, layout=layout)
    assert change(engine, minutes=3) == [f"minutes {step}" for step in STEPS]
    give(layout, pipeline, 1000, 2000)
    change(engine, minutes=2, pairs=4)
    assert engine.capabilities.pauses == {"minutes", "pairs"}
    give(layout, pipeline, 2000, 3000)
    change(engine, minutes=4, pairs=1)
    until(engine, drained(engine))
    engine.advance(0.5)
    assert engine.observe().operators["minutes"].rescale_s > 0  # type: ignore[operator]
    assert wrong(layout, 3000) == []
    assert len(rows(layout, "minutes", "n")) > 100


def test_a_start_finishes_what_was_cut_short(started: Started, layout: RunLayout) -> None:
    pipeline = clicks_and_views()
    give(layout, pipeline, 0, 200)
    engine = started.engine(pipeline, layout=layout)
    until(engine, drained(engine))
    engine.stop()
    started.engines.clear()
    # what a kill right after the wish was written down leaves behind
    layout.native("minutes").parent.mkdir(exist_ok=True)
    layout.native("minutes").write_text('{"target": 3, "costs": []}')
    again = started.engine(pipeline, layout=layout)
    assert again.status().running["minutes"] == 3
    last = read_last_batch(layout.checkpoint("minutes"))
    assert last is not None
    assert last.partitions == 3
    assert layout.native("minutes").read_text() == '{"target":null,"costs":[]}'
    give(layout, pipeline, 200, 400)
    until(again, drained(again))
    give(layout, pipeline, 400, 401)
    until(again, drained(again))
    assert wrong(layout, 401) == []
    assert len(rows(layout, "minutes", "n")) > 9


def test_state_is_for_native_operators_and_they_are_for_state(
    started: Started, layout: RunLayout
) -> None:
    pipeline = Pipeline("none")
    pipeline.topic("clicks", "id long", external=True)

    @pipeline.native("clicks", "same")
    def same(df: DataFrame) -> DataFrame:
        return df

    with pytest.raises(InputError, match="has no state that Spark would keep"):
        started.engine(pipeline, layout=layout)
    started.engines.clear()


def test_what_spark_refuses_is_told_to_its_author(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("none")
    pipeline.topic("clicks", "id long", external=True)

    @pipeline.native("clicks", "counts")
    def count(df: DataFrame) -> DataFrame:
        return df.groupBy("id").count()

    with pytest.raises(InputError, match=r"count: .*watermark"):
        started.engine(pipeline, layout=layout)


class Sum(StatefulProcessor):
    """Adds up the ids of each user, and tells the sum after every batch."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sum = handle.getValueState("sum", "total long")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803, ARG002
    ) -> Iterator[Row]:
        before = self._sum.get()[0] if self._sum.exists() else 0
        total = before + sum(row.id for row in rows)
        self._sum.update((total,))
        yield Row(user=key[0], total=total)

    def close(self) -> None:
        """Nothing is held open."""


def test_a_processor_of_ones_own_keeps_its_state(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("own")
    pipeline.topic("clicks", "id long, user long, at timestamp", external=True)
    pipeline.topic("views", "id long, seen timestamp", external=True)
    pipeline.topic("sums", "user long, total long")

    @pipeline.native("clicks", "sums", max_replicas=4)
    def add(df: DataFrame) -> DataFrame:
        return df.groupBy("user").transformWithState(
            Sum(), "user long, total long", "Update", "None"
        )

    give(layout, pipeline, 0, 300)
    engine = started.engine(pipeline, layout=layout)
    until(engine, drained(engine))
    change(engine, add=3)
    give(layout, pipeline, 300, 600)
    until(engine, drained(engine))
    last = dict(zip(rows(layout, "sums", "user"), rows(layout, "sums", "total"), strict=True))
    assert last == {user: sum(i for i in range(600) if i * i % 17 == user) for user in last}
    assert len(last) == 9
