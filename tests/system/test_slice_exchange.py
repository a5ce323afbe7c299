"""A stream that is handed to all slices of one operator and collected by those of the next.

One operator writes two topics, one by key and one for all slices; the last one reads whole commits.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.spark_engines import Started, until

from penstock.engines.port import Plan
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

pytestmark = pytest.mark.spark

SLICES = 4


def exchange() -> Pipeline:
    """Watches are kept in slices; every event is compared with all of them."""
    pipeline = Pipeline("exchange")
    pipeline.topic("requests", "id long, is_watch boolean, value long", external=True)
    pipeline.topic("watches", "id long, value long")
    pipeline.topic("events", "id long, value long")
    pipeline.topic("partial", "event long, offset long, slice int, ids array<long>")
    pipeline.topic("receipts", "id long, offset long")
    pipeline.topic("matches", "event long, offset long, lists int, ids array<long>")

    @pipeline.batches("requests", ("events", "watches"), max_replicas=4)
    def access(batch: pa.RecordBatch) -> dict[str, Any]:
        watches = batch.filter(batch["is_watch"])
        events = batch.filter(pc.invert(batch["is_watch"]))
        columns = ["id", "value"]
        return {"watches": watches.select(columns), "events": events.select(columns)}

    @pipeline.sliced(
        ("watches", "events"),
        ("partial", "receipts"),
        key={"watches": "id"},
        broadcast=("events",),
        state="value long",
        slices=SLICES,
        max_replicas=4,
    )
    def match(inputs: dict[str, pa.RecordBatch], state: State) -> dict[str, Any]:
        watches, events = inputs["watches"], inputs["events"]
        if watches.num_rows:
            state.put({"id": watches["id"], "value": watches["value"]})
        known = [row for rows in state.scan() for row in rows.to_pylist()]
        lists = [
            sorted(row["id"] for row in known if row["value"] == value)
            for value in events["value"].to_pylist()
        ]
        first = state.input_starts["events"]
        assert state.input_ends["events"] - first == events.num_rows
        partial = {
            "event": events["id"],
            "offset": pa.array(range(first, first + events.num_rows), pa.int64()),
            "slice": pa.array([state.slice] * events.num_rows, pa.int32()),
            "ids": pa.array(lists, pa.list_(pa.int64())),
            "_event": events["_event"],
        }
        offsets = pa.array([first] * watches.num_rows, pa.int64())
        receipts = {"id": watches["id"], "offset": offsets, "_event": watches["_event"]}
        return {"partial": partial, "receipts": receipts}

    @pipeline.sliced(
        "partial", "matches", key="event", state="n int", slices=3, max_replicas=4,
        whole_commits=True,
    )  # fmt: skip
    def collect(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
        lists: dict[int, list[dict[str, Any]]] = {}
        for row in batch.to_pylist():
            lists.setdefault(row["event"], []).append(row)
        return {
            "event": list(lists),
            "offset": [rows[0]["offset"] for rows in lists.values()],
            "lists": pa.array([len(rows) for rows in lists.values()], pa.int32()),
            "ids": [sorted(id for row in rows for id in row["ids"]) for rows in lists.values()],
            "_event": [rows[0]["_event"] for rows in lists.values()],
        }

    return pipeline


def requests(start: int, end: int) -> list[dict[str, Any]]:
    """Every fifth is a watch."""
    return [{"id": n, "is_watch": n % 5 == 0, "value": n % 7} for n in range(start, end)]


def put(layout: RunLayout, rows: list[dict[str, Any]]) -> None:
    topic = Topic.open(layout.topic("requests"))
    with TopicWriter(topic, "test") as writer:
        writer.append(pa.Table.from_pylist(rows, schema=pa.schema(list(topic.schema)[:-1])))


def read(layout: RunLayout, topic: str) -> list[dict[str, Any]]:
    log = Topic.open(layout.topic(topic))
    return [row for batch in log.read(log.first, log.end) for row in batch.to_pylist()]


def test_every_event_meets_every_watch_once_while_replicas_change(
    started: Started, layout: RunLayout
) -> None:
    engine = started.engine(exchange(), layout=layout)
    replicas = [(1, 2, 3), (3, 4, 1), (2, 1, 4), (1, 3, 2)]
    sent = 0
    for counts in replicas:
        operators = dict(zip(("access", "match", "collect"), counts, strict=True))
        engine.apply(Plan(replicas=operators))
        for _ in range(3):
            put(layout, requests(sent, sent + 150))
            sent += 150
            engine.advance(0.5)
    until(engine, lambda: engine.is_drained)
    found = {row["event"]: row for row in read(layout, "matches")}
    assert Topic.open(layout.topic("matches")).end == len(found)
    # a batch that is cut inside a commit would have seen a part of the lists
    assert {row["lists"] for row in found.values()} == {SLICES}
    assert sorted(found) == [n for n in range(sent) if n % 5]
    assert sorted(row["offset"] for row in found.values()) == list(range(len(found)))
    # a watch counts from the first event of the batch that took it
    watches = {row["id"]: row["offset"] for row in read(layout, "receipts")}
    assert sorted(watches) == [n for n in range(sent) if n % 5 == 0]
    assert Topic.open(layout.topic("receipts")).end == len(watches)
    for event, row in found.items():
        expected = [
            id for id in sorted(watches) if id % 7 == event % 7 and watches[id] <= row["offset"]
        ]
        assert row["ids"] == expected
