"""Chains of operators in one task: the rows of separate queries, and what each member did."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.by_hand import ByHand

from penstock.engines.microbatch.batch_record import read_record, write_record
from penstock.engines.spark.io.call_marker import CallMark, read_marks
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.embedded.topic import Topic


def numbers(head: str = "batch", **options: Any) -> Pipeline:
    """Three operators: even numbers only, each twice, then with a text; or counted before."""
    pipeline = Pipeline("numbers")
    pipeline.topic("numbers", "id long, at timestamp", external=True)
    pipeline.topic("even", "id long")
    pipeline.topic("twice", "id long")
    pipeline.topic("texts", "id long, text string")

    def evens(batch: pa.RecordBatch, state: State | None = None) -> pa.RecordBatch:
        if state is not None:
            known = state.get(batch.select(["id"]))["n"]
            seen = pc.fill_null(known, 0)
            state.put({"id": batch["id"], "n": pc.add(seen, 1)})
            batch = batch.select(["id", "_event"])
        else:
            batch = batch.select(["id"])
        return batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0))

    def double(batch: pa.RecordBatch) -> dict[str, Any]:
        if 66 in batch["id"].to_pylist():
            raise ValueError("66 cannot be doubled")
        return {"id": [number for number in batch["id"].to_pylist() for _ in range(2)]}

    def spell(batch: pa.RecordBatch) -> dict[str, Any]:
        if 88 in batch["id"].to_pylist():
            raise ValueError("88 has no text")
        return {"id": batch["id"], "text": [f"n{number}" for number in batch["id"].to_pylist()]}

    if head == "sliced":
        pipeline.sliced("numbers", "even", key="id", state="n long", slices=4)(evens)
    else:
        pipeline.batches("numbers", "even", **options)(evens)
    pipeline.batches("even", "twice", **options)(double)
    pipeline.batches("twice", "texts", **options)(spell)
    return pipeline


def put(hand: ByHand, *ids: int) -> None:
    hand.put([{"id": number, "at": None} for number in ids], "numbers")


def texts(hand: ByHand) -> list[str]:
    return sorted(row["text"] for row in hand.out("texts"))


def expected(*ids: int) -> list[str]:
    return sorted(f"n{number}" for number in ids if number % 2 == 0 for _ in range(2))


@pytest.mark.parametrize("head", ["batch", "sliced"])
def test_a_chain_writes_what_its_members_would(tmp_path: Path, head: str) -> None:
    pipeline = join_chains(numbers(head))
    hand = ByHand(tmp_path, pipeline, "evens")
    put(hand, *range(10))
    hand.run(10, 2)
    assert texts(hand) == expected(*range(10))
    record = hand.log.last()
    assert record is not None and (record.rows_in, record.rows_out) == (10, 10)
    assert {*record.outputs} == {"texts"}
    members = [[(m.name, m.rows_in, m.rows_out) for m in task.members] for task in record.tasks]
    sums = [
        (name, sum(t[i][1] for t in members), sum(t[i][2] for t in members))
        for i, name in enumerate(("evens", "double", "spell"))
    ]
    assert sums == [("evens", 10, 5), ("double", 5, 10), ("spell", 10, 10)]
    for task in record.tasks:
        assert sum(member.busy_s for member in task.members) == pytest.approx(task.busy_s)
        assert all(member.busy_s >= 0 for member in task.members)
    assert read_record(write_record(record)) == record


def test_the_record_of_an_operator_alone_does_not_mention_members(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, numbers(), "evens")
    put(hand, 1, 2)
    hand.run(2, 1)
    (path,) = hand.log.directory.glob("*.json")
    assert b"members" not in path.read_bytes()


def test_rows_of_slices_are_gathered_for_the_next_member(tmp_path: Path) -> None:
    """A call for each slice would be slow: there are many slices, and each has few rows."""
    pipeline = numbers("sliced")
    member = pipeline.operators["double"]

    def count(batch: pa.RecordBatch) -> Any:
        with (tmp_path / "calls").open("a") as file:
            file.write(f"{batch.num_rows}\n")
        return member.function(batch)

    del pipeline.operators["double"], pipeline.operators["spell"], pipeline.declared["texts"]
    count.__name__ = "double"
    pipeline.batches("even", "twice")(count)
    hand = ByHand(tmp_path, join_chains(pipeline), "evens")
    put(hand, *range(0, 40, 2))
    hand.run(20, 1)
    calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert calls == [20]


def test_the_member_that_fails_is_named(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, join_chains(numbers()), "evens")
    put(hand, 2, 66)
    with pytest.raises(ValueError, match="66"):
        hand.run(2, 1)
    failure = failures.load(hand.layout, "evens")
    assert failure is not None and failure.member == "double"
    text = failure.text("evens")
    assert text.startswith("double, in the chain of evens, failed on rows 0 to 1 of topic numbers:")
    assert "66 cannot be doubled" in text and Path(__file__).name in text


@pytest.mark.parametrize("head", ["sliced"])
def test_the_member_behind_slices_that_fails_is_named(tmp_path: Path, head: str) -> None:
    hand = ByHand(tmp_path, join_chains(numbers(head)), "evens")
    put(hand, 88)
    with pytest.raises(ValueError, match="88"):
        hand.run(1, 1)
    failure = failures.load(hand.layout, "evens")
    assert failure is not None and failure.member == "spell"


def test_each_member_has_its_own_error_topic(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, join_chains(numbers(on_error="dead-letter")), "evens")
    put(hand, 2, 66, 88, 4)
    hand.run(4, 1)
    assert texts(hand) == expected(2, 4)
    (letter,) = hand.out("double-errors")
    assert letter == {
        "topic": "even",
        "offset": None,
        "error": "ValueError: 66 cannot be doubled",
        "row": json.dumps({"id": 66}),
    }
    assert [json.loads(row["row"])["id"] for row in hand.out("spell-errors")] == [88, 88]
    assert [*hand.out("evens-errors")] == []
    record = hand.log.last()
    assert record is not None
    (task,) = record.tasks
    assert [member.put_aside for member in task.members] == [0, 1, 2]
    assert task.put_aside == 3
    assert task.rows_in + task.expanded - task.filtered - task.put_aside == task.rows_out


def test_the_mark_of_a_call_names_the_member(tmp_path: Path) -> None:
    """A process that dies reports nothing else."""
    pipeline = numbers(on_error="dead-letter")
    layout = RunLayout(tmp_path)

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        (mark,) = read_marks(layout, "evens")
        (tmp_path / "seen").write_text(json.dumps([mark.member, mark.topic, mark.first, mark.end]))
        return batch

    del pipeline.operators["double"]
    pipeline.batches("even", "twice", on_error="dead-letter")(double)
    hand = ByHand(tmp_path, join_chains(pipeline), "evens")
    put(hand, 2, 4)
    hand.run(2, 1)
    assert json.loads((tmp_path / "seen").read_text()) == ["double", "numbers", 0, 2]
    put(hand, 6, 8)
    hand.layout.marks("evens").mkdir(parents=True, exist_ok=True)
    deadly = CallMark(topic="numbers", first=2, end=3, began_at=0.0, deaths=1, member="double")
    (hand.layout.marks("evens") / "0.json").write_text(json.dumps(asdict(deadly)))
    hand.run(4, 1)
    (letter,) = hand.out("evens-errors")
    assert (letter["offset"], letter["error"]) == (2, "the worker process died in double")
    assert sorted({row["id"] for row in hand.out("texts")}) == [2, 4, 8]


def test_a_record_is_published_where_its_rows_are_when_a_chain_is_cut(tmp_path: Path) -> None:
    """The driver dies between the record and the topic; the next start has no chain."""
    hand = ByHand(tmp_path, join_chains(numbers()), "evens")
    put(hand, *range(6))
    texts_topic = Topic.open(hand.layout.topic("texts"))
    hand.run(6, 1)
    for commit in (texts_topic.directory / "commits").glob("[0-9]*"):
        commit.unlink()  # as if it had not been published
    assert texts(hand) == []
    alone = ByHand(tmp_path, numbers(), "evens")
    assert texts(alone) == expected(*range(6))
    alone.batch, alone.at = 0, {"numbers": 0}
    alone.run(6, 1)  # Spark runs the batch again: its record counts
    assert texts(alone) == expected(*range(6)) and [*alone.out("even")] == []
    put(alone, 6, 7)
    alone.run(8, 1)
    assert [row["id"] for row in alone.out("even")] == [6]


def test_rows_of_a_cut_chain_are_published_before_leftovers_are_removed(tmp_path: Path) -> None:
    """Segments that no commit names are removed after a minute; here, by the new writer."""
    hand = ByHand(tmp_path, join_chains(numbers()), "evens")
    put(hand, *range(6))
    hand.run(6, 1)
    texts_topic = Topic.open(hand.layout.topic("texts"))
    for commit in (texts_topic.directory / "commits").glob("[0-9]*"):
        commit.unlink()
    for segment in (texts_topic.directory / SEGMENTS).iterdir():
        os.utime(segment, (0, 0))
    alone = numbers()
    make_topics(alone, hand.layout)
    alone.operators = dict(reversed(alone.operators.items()))
    recover(alone, hand.layout)
    assert texts(hand) == expected(*range(6))


def test_rows_that_members_add_and_remove_are_counted_apart(tmp_path: Path) -> None:
    """Otherwise numbers that a follower left out would seem lost."""
    pipeline = Pipeline("counts")
    for name in ("in", "middle", "out"):
        pipeline.topic(name, "id long", external=name == "in")

    def double(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"id": [number for number in batch["id"].to_pylist() for _ in range(2)]}

    def small(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.less(batch["id"], 5))

    pipeline.batches("in", "middle")(double)
    pipeline.batches("middle", "out")(small)
    hand = ByHand(tmp_path, join_chains(pipeline), "double")
    hand.put([{"id": number} for number in range(10)], "in")
    hand.run(10, 1)
    record = hand.log.last()
    assert record is not None
    (task,) = record.tasks
    assert (task.rows_in, task.expanded, task.filtered, task.rows_out) == (10, 10, 10, 10)


def test_a_record_is_published_where_its_rows_are_when_a_chain_is_joined(tmp_path: Path) -> None:
    alone = ByHand(tmp_path, numbers(), "evens")
    put(alone, *range(6))
    alone.run(6, 1)
    for commit in (alone.layout.topic("even") / "commits").glob("[0-9]*"):
        commit.unlink()
    hand = ByHand(tmp_path, join_chains(numbers()), "evens")
    recover(hand.pipeline, hand.layout)
    assert [row["id"] for row in hand.out("even")] == [0, 2, 4]
    hand.batch, hand.at = 0, {"numbers": 0}
    hand.run(6, 1)
    assert texts(hand) == []


@pytest.mark.parametrize(("middle", "passed"), [("id long", False), ("at timestamp", True)])
def test_event_times_pass_where_every_member_passes_them_on(
    tmp_path: Path, middle: str, passed: bool
) -> None:
    pipeline = Pipeline("times")
    for name, columns in {"in": "id long, at timestamp", "out": "at timestamp"}.items():
        pipeline.topic(name, columns, external=name == "in")
    pipeline.topic("middle", middle)

    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["at" if passed else "id"])

    def second(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"at": pa.array([1_000_000] * batch.num_rows, pa.timestamp("us", "UTC"))}

    pipeline.batches("in", "middle")(first)
    pipeline.batches("middle", "out")(second)
    hand = ByHand(tmp_path, join_chains(pipeline), "first")
    hand.put([{"id": 2, "at": 1_000_000}], "in")
    hand.run(1, 1)
    newest = Topic.open(hand.layout.topic("out")).newest
    assert newest is not None and ("at" in newest.event_times) is passed


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_cuts_joins_and_repeated_attempts_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Between two starts the chain may be cut or joined; rows in between are processed first."""
    head = data.draw(st.sampled_from(["batch", "sliced"]))
    run = tmp_path_factory.mktemp("run")
    ids: list[int] = []
    positions: dict[str, tuple[int, dict[str, int]]] = {}

    def step(pipeline: Pipeline, name: str, end: int | None = None) -> None:
        hand = ByHand(run, pipeline, name)
        hand.batch, hand.at = positions.get(name, (0, hand.at))
        (topic,) = hand.at
        last = Topic.open(hand.layout.topic(topic)).end if end is None else end
        if last > hand.at[topic]:
            crash = data.draw(st.booleans())
            hand.run(last, data.draw(st.integers(1, 3)), attempts=2, crash=crash)
        positions[name] = hand.batch, hand.at

    for _ in range(data.draw(st.integers(1, 4))):
        is_chained = data.draw(st.booleans())
        pipeline = join_chains(numbers(head)) if is_chained else numbers(head)
        new = [*range(len(ids), len(ids) + data.draw(st.integers(1, 5)))]
        source = ByHand(run, numbers(head), "evens")
        put(source, *new)
        ids += new
        if is_chained:  # what is left in the topics between the members comes first
            for name in ("double", "spell"):
                step(numbers(head), name)
            step(pipeline, "evens")
        else:
            step(pipeline, "evens")
            for name in ("double", "spell"):
                if data.draw(st.booleans()):
                    step(pipeline, name)
    for name in ("evens", "double", "spell"):
        step(numbers(head), name)
    assert texts(ByHand(run, numbers(head), "spell")) == expected(*ids)
