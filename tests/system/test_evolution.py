"""A run that is stopped and goes on with another pipeline file, against plain Python."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from tests.spark_engines import Started, until
from tests.system.test_operators import drained, fill, rows

from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.pipeline_changes import check_description
from penstock.topics.embedded.check import check_directory

pytestmark = pytest.mark.spark

SHOPS = [f"shop {i * i % 13}" for i in range(1500)]


class Sum(StatefulProcessor):
    """Counts the rows of each shop in state of Spark's own."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sum = handle.getValueState("sum", "n long")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803, ARG002
    ) -> Iterator[Row]:
        before = self._sum.get()[0] if self._sum.exists() else 0
        n = before + sum(1 for _ in rows)
        self._sum.update((n,))
        yield Row(shop=key[0], n=n)

    def close(self) -> None:
        """Nothing is held open."""


def shop(*, is_new: bool) -> Pipeline:
    """Sales by shop. The new one has a column more, other names, and another operator."""
    name = {
        "orders": ("priced", "orders"),
        "convert": ("price", "convert"),
        "sum_up": ("total", "sum_up"),
        "last": ("latest", "last"),
    }
    old = {new: names[0] if is_new else None for new, names in name.items()}
    now = {new: names[is_new] for new, names in name.items()}
    note = ", note string" if is_new else ""
    pipeline = Pipeline("shop")
    pipeline.topic("sales", f"id long, shop string, price long{note}", external=True)
    pipeline.topic(
        now["orders"], f"id long{note}, shop string, price long", keep="1 day", was=old["orders"]
    )
    pipeline.topic("totals", "shop string, total long", keep="1 day")

    def convert(batch: pa.RecordBatch) -> dict[str, Any]:
        columns = {name: batch[name] for name in batch.schema.names if name != "_event"}
        return {**columns, "price": pc.multiply(batch["price"], 100)}

    def sum_up(batch: pa.RecordBatch, state: Any) -> dict[str, Any]:
        groups = pa.Table.from_batches([batch]).group_by("shop", use_threads=False)
        sums = groups.aggregate([("price", "sum"), ("_event", "max")])
        keys = sums.select(["shop"]).combine_chunks().to_batches()[0]
        known = pc.fill_null(state.get(keys)["total"], 0)
        rows = {"shop": keys["shop"], "total": pc.add(known, sums["price_sum"].combine_chunks())}
        state.put(rows)
        return {**rows, "_event": sums["_event_max"].combine_chunks()}

    def last(df: DataFrame) -> DataFrame:
        return df.groupBy("shop").transformWithState(Sum(), "shop string, n long", "Update", "None")

    for function in (convert, sum_up, last):
        function.__name__ = now[function.__name__]
    pipeline.batches("sales", now["orders"], max_replicas=2, was=old["convert"])(convert)
    pipeline.sliced(
        now["orders"], "totals", key="shop", state="total long", slices=8, was=old["sum_up"]
    )(sum_up)
    pipeline.topic("shops", "shop string, n long", keep="1 day")
    pipeline.native("sales", "shops", was=old["last"])(last)
    if is_new:
        pipeline.topic("noted", "id long, note string", keep="1 day")

        @pipeline.operator("orders", "noted")
        def noted(df: DataFrame) -> DataFrame:
            return df.select("id", F.coalesce("note", F.lit("none")).alias("note"))

    return pipeline


def test_a_run_goes_on_with_new_columns_names_and_operators(
    started: Started, layout: RunLayout, tmp_path: Path
) -> None:
    before, after = shop(is_new=False), shop(is_new=True)
    check_description(before, layout.run)
    give(layout, before, 0, 600)
    engine = started.engine(before, layout=layout)
    until(engine, drained(engine))
    give(layout, before, 600, 1000)  # some of these wait when it stops
    engine.stop()
    assert not engine.operator_errors
    started.engines.clear()  # its topics get other names

    notes = check_description(after, layout.run)
    assert len([note for note in notes if "is now" in note]) == 4
    engine = started.engine(after, layout=layout)
    give(layout, after, 1000, 1500, note=[f"note {i}" for i in range(1000, 1500)])
    until(engine, drained(engine))
    engine.stop()
    assert not engine.operator_errors

    truth: Counter[str] = Counter()
    for i, name in enumerate(SHOPS):
        truth[name] += i * 100
    found = dict(zip(rows(layout, "totals", "shop"), rows(layout, "totals", "total"), strict=True))
    assert found == truth
    counted = dict(zip(rows(layout, "shops", "shop"), rows(layout, "shops", "n"), strict=True))
    assert counted == Counter(SHOPS)
    notes_of = dict(zip(rows(layout, "noted", "id"), rows(layout, "noted", "note"), strict=True))
    assert notes_of == {i: f"note {i}" if i >= 1000 else "none" for i in range(1500)}
    assert sorted(rows(layout, "orders", "id")) == list(range(1500))
    for topic in ("sales", "orders", "totals", "noted", "shops"):
        assert check_directory(layout.topic(topic)) == []
    for folder in ("checkpoints", "batches"):
        names = {path.name for path in (layout.run / folder).iterdir()}
        assert names == {"convert", "sum_up", "last", "noted"}
    assert check_description(after, layout.run) == []


def give(layout: RunLayout, pipeline: Pipeline, first: int, end: int, **more: list[Any]) -> None:
    ids = list(range(first, end))
    fill(layout, pipeline, "sales", id=ids, shop=SHOPS[first:end], price=ids, **more)
