"""A sliced operator without Spark: source, tasks and commits by hand, at any number of replicas.

Batches are cut anywhere, run again, and aborted on the way; what comes out must be what one
process makes of the same batches, and nothing may be left on disk that is not needed.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import by_hand
from tests.tools.by_hand import ByHand, Row

from penstock.core.decision import Move
from penstock.engines.microbatch.slice_assignment import read_moves
from penstock.engines.spark.io import call_marker
from penstock.engines.spark.io.call_marker import read_marks
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts
from penstock.pipelines.stateful.time_windows import windows
from penstock.pipelines.stateful.try_out import try_batches
from penstock.state.version import file_names

COLUMNS = "word string, at timestamp"


def word_counts() -> Pipeline:
    pipeline = Pipeline("words")
    pipeline.topic("words", COLUMNS, external=True)
    ready = counts(by="word")
    pipeline.sliced("words", "counted", slices=7, max_replicas=9, name="count")(ready)
    return pipeline


def word_windows() -> Pipeline:
    pipeline = Pipeline("words")
    pipeline.topic("words", COLUMNS, external=True)
    ready = windows(by="word", size_s=10, time="at")
    options = {"slices": 7, "max_replicas": 9, "delay_s": 5.0, "late_to": "late"}
    pipeline.sliced("words", "counted", name="count", **options)(ready)
    return pipeline


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "word": st.one_of(st.none(), st.sampled_from("abcdefghij")),
            "at": st.integers(0, 200).map(lambda s: s * 1_000_000),
        }
    ),
    min_size=1,
    max_size=12,
)
STEP = st.tuples(ROWS, st.integers(1, 8), st.integers(1, 2), st.booleans())


@settings(max_examples=25)
@given(st.lists(STEP, min_size=1, max_size=8), st.booleans())
def test_any_replicas_and_any_attempts_come_to_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[Row], int, int, bool]],
    is_windowed: bool,
) -> None:
    pipeline = word_windows() if is_windowed else word_counts()
    hand = ByHand(tmp_path_factory.mktemp("slices") / "run", pipeline, "count")
    end = 0
    for rows, replicas, attempts, crash in steps:
        hand.put(rows)
        end += len(rows)
        hand.run(end, replicas, attempts=attempts, crash=crash)
    expected = try_batches(
        pipeline.operators["count"].function,
        [pa.Table.from_pylist(rows, schema=TABLE) for rows, *_ in steps],
        COLUMNS,
        slices=7,
        delay_s=5.0 if is_windowed else 0.0,
    )
    assert sorted(hand.out("counted"), key=repr) == sorted(expected.rows, key=repr)
    if is_windowed:
        late = [row for batch in expected.late for row in batch]
        assert len(list(hand.out("late"))) == len(late)
        assert sum(task.late for record in records(hand) for task in record.tasks) == len(late)
    check_disk(hand)


TABLE = pa.schema([("word", pa.string()), ("at", pa.timestamp("us", "UTC"))])


def records(hand: ByHand) -> list[Any]:
    return [record for n in range(hand.batch) if (record := hand.log.get(n)) is not None]


def check_disk(hand: ByHand) -> None:
    """After a new start only the last two versions are on disk."""
    recover(hand.pipeline, hand.layout)
    last = records(hand)[-2:]
    assert hand.on_disk() == set().union(*(file_names(record.state) for record in last))


def test_batches_may_be_cut_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", word_counts(), "count")
    hand.put([{"word": word, "at": 0} for word in "aabbccddee" * 3])
    for end, replicas in ((7, 2), (8, 3), (30, 1)):
        hand.run(end, replicas)
    assert {row["word"]: row["n"] for row in hand.out("counted")} == dict.fromkeys("abcde", 6)


def test_files_go_as_batches_come(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", word_counts(), "count")
    seen = []
    for number in range(40):
        hand.put([{"word": f"w{(number * 31 + i) % 100}", "at": 0} for i in range(40)])
        hand.run(40 * (number + 1), 1 + number % 4)
        seen.append(len(hand.on_disk()))
    assert max(seen[20:]) <= 60
    assert sum(row["n"] for row in {r["word"]: r for r in hand.out("counted")}.values()) == 1600


def test_slices_stay_where_they_are(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", word_counts(), "count")
    for number, replicas in enumerate((3, 3, 4)):
        hand.put([{"word": f"w{i}", "at": 0} for i in range(50)])
        hand.run(50 * (number + 1), replicas)
    first, second, third = ([task.slices for task in record.tasks] for record in records(hand))
    assert sorted(s for task in first for s in task) == list(range(7))
    moved = [s for home, task in enumerate(second) for s in task if s not in first[home]]
    assert len(moved) <= 3
    assert len(third) == 4


def test_a_slice_moves_when_it_is_asked_to_and_stays(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", word_counts(), "count")
    homes = []
    mind = hand.mind()
    for number in range(12):
        hand.put([{"word": f"w{i}", "at": 0} for i in range(50)])
        start = {"at": dict(hand.at), "skips": {}}
        end = {"at": {"words": 50 * (number + 1)}, "skips": {}}
        mind.loads = [0.01] * 3 + [9.0 + number] + [0.01] * 3  # it would be evened out
        pins = dict.fromkeys((1, 3, 5), 1 - homes[0]) if number >= 1 else {}
        write_command(hand.layout, "count", Command(replicas=2, pins=pins))
        hand.sink.commit([hand.task(task) for task in mind.plan(start, end).tasks], number)
        hand.batch, hand.at = number + 1, end["at"]
        (home,) = (i for i, task in enumerate(records(hand)[-1].tasks) if 3 in task.slices)
        homes.append(home)
    assert homes[1:] == [1 - homes[0]] * 11
    counted = {row["word"]: row["n"] for row in hand.out("counted")}
    assert counted == {f"w{i}": 12 for i in range(50)}


@pytest.mark.parametrize(
    ("move", "problem"),
    [
        (Move("count/64", "count/0", "count/1"), "has 64 slices"),
        (Move("counts/4", "counts/0", "counts/1"), "did you mean 'count'"),
        (Move("count/4", "count/0", "other/1"), "cannot leave count"),
        (Move("count", "count/0", "count/1"), "such as count/3"),
    ],
)
def test_moves_that_cannot_be(move: Move, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_moves([move], {"count": 64})


def test_a_function_that_raises_says_which_rows(tmp_path: Path) -> None:
    pipeline = Pipeline("fails")
    pipeline.topic("words", COLUMNS, external=True)
    pipeline.topic("out", "word string")

    @pipeline.sliced("words", "out", key="word", state="n long")
    def fails(batch: pa.RecordBatch, state: Any) -> Any:
        raise ValueError("no")

    hand = ByHand(tmp_path / "run", pipeline, "fails")
    hand.put([{"word": "a", "at": 0}, {"word": "b", "at": 0}])
    with pytest.raises(ValueError, match="no"):
        hand.run(2, 2)
    assert "ValueError: no" in hand.layout.error("fails").read_text()


def test_every_call_is_marked_with_its_rows_and_has_the_time_that_its_operator_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody could tell on which rows a process hung or died."""
    layout, pipeline = RunLayout(tmp_path / "run"), Pipeline("hangs")
    pipeline.topic("words", COLUMNS, external=True)
    pipeline.topic("out", "word string")

    @pipeline.sliced("words", "out", key="word", state="n long", call_timeout_s=7.0, slices=3)
    def hangs(batch: pa.RecordBatch, state: Any) -> Any:
        marks = read_marks(layout, "hangs")
        by_hand.CALLS.extend((mark.topic, mark.first, mark.end) for mark in marks)

    calls = by_hand.CALLS
    calls.clear()
    watchdog = call_marker.faulthandler
    monkeypatch.setattr(watchdog, "dump_traceback_later", lambda s, **_: calls.append(s))
    monkeypatch.setattr(watchdog, "cancel_dump_traceback_later", lambda: calls.append("end"))
    hand = ByHand(layout.run, pipeline, "hangs")
    hand.put([{"word": word, "at": 0} for word in "abcdefgh"])
    hand.run(8, 1)
    assert len(calls) in (3, 6, 9)  # a call for each slice with rows
    assert calls == [7.0, ("words", 0, 8), "end"] * (len(calls) // 3)
    assert read_marks(layout, "hangs") == []
