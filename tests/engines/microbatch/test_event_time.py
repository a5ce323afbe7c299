"""Windows do not depend on how their input is cut: source batches, operators' batches, replicas.

Rows come from a source whose disorder is within the delay, in source batches that are in no order
at all. However they are cut, no row is late and windows equal a query over all rows at once.
"""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.by_hand import ByHand, Row

from penstock.engines.microbatch.event_time import find_slowest_times
from penstock.engines.microbatch.slice_assignment import compute_watermark
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.input_progress import InputProgress
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful import counts
from penstock.pipelines.stateful.time_windows import windows
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.completeness import COMPLETE, complete_ends, mark_complete
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

COLUMNS = "word string, at timestamp"
SECOND = 1_000_000
DELAY_S, SIZE_S = 5, 10
#: Later than all others, so that every window is closed in the end.
LAST_S = 100_000


def pipeline_of(*, union: bool) -> Pipeline:
    """Filter, then count by window; the filter reads one topic, or two."""
    pipeline = Pipeline("words")
    topics = ["one", "two"] if union else ["one"]
    for topic in topics:
        pipeline.topic(topic, COLUMNS, external=True)
    pipeline.topic("kept", COLUMNS)

    @pipeline.batches(reads=topics, writes="kept", max_replicas=4)
    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.not_equal(batch["word"], "x"))

    options: Any = {"slices": 5, "max_replicas": 4, "delay_s": DELAY_S, "late_to": "late"}
    count = pipeline.sliced("kept", "counted", name="count", **options)
    count(windows(by="word", size_s=SIZE_S, time="at"))
    return pipeline


def source_batches(rng: random.Random, rows: int) -> list[list[Row]]:
    """Rows whose disorder is within the delay, cut into batches, each in any order."""
    times = [rng.randint(0, 120) for _ in range(rows)]
    times.sort(key=lambda second: second + rng.random() * DELAY_S)
    line = [{"word": rng.choice("abx"), "at": second * SECOND} for second in times]
    batches = []
    while line:
        size = rng.choice([1, 3, 10, len(line)])
        batch, line = line[:size], line[size:]
        rng.shuffle(batch)
        batches.append(batch)
    return batches


def truth(batches: list[list[Row]]) -> Counter[tuple[str, int]]:
    """What one query over all rows would say."""
    rows = [row for batch in batches for row in batch if row["word"] != "x"]
    return Counter((row["word"], row["at"] // SECOND // SIZE_S * SIZE_S) for row in rows)


def found(hand: ByHand) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for row in hand.out("counted"):
        key = row["word"], int(row["start"].timestamp())
        assert key not in counts, "a window is told once"
        counts[key] = row["n"]
    return counts


class Chain:
    """Both operators, run in batches that are cut anywhere."""

    def __init__(self, run: Path, rng: random.Random, *, union: bool) -> None:
        pipeline = pipeline_of(union=union)
        self.keep, self.count = ByHand(run, pipeline, "keep"), ByHand(run, pipeline, "count")
        self.topics = list(pipeline.operators["keep"].reads)
        self._rng = rng

    def put(self, topic: str, rows: list[Row]) -> None:
        self.keep.put(rows, topic)

    def step(self, *, whole: bool = False) -> None:
        """Let each operator read to its topics' ends, or to anywhere before."""
        for hand in (self.keep, self.count):
            ends = {}
            for topic, at in hand.at.items():
                end = Topic.open(hand.layout.topic(topic)).end
                ends[topic] = end if whole else self._rng.randint(at, end)
            if ends != hand.at:
                attempts = self._rng.choice([1, 1, 2])
                hand.run_to(ends, self._rng.randint(1, 3), attempts=attempts)

    def finish(self) -> None:
        """Let the watermark pass every window."""
        for second in (LAST_S, LAST_S + 1):
            for topic in self.topics:
                self.put(topic, [{"word": "a", "at": second * SECOND}])
            self.step(whole=True)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 60), union=st.booleans())
def test_windows_equal_one_query_however_the_input_is_cut(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rows: int, union: bool
) -> None:
    rng = random.Random(seed)
    chain = Chain(tmp_path_factory.mktemp("times") / "run", rng, union=union)
    batches = {topic: source_batches(rng, rows) for topic in chain.topics}
    left = {topic: list(waiting) for topic, waiting in batches.items()}
    while any(left.values()):
        topic = rng.choice([topic for topic, waiting in left.items() if waiting])
        chain.put(topic, left[topic].pop(0))
        for _ in range(rng.randint(0, 3)):
            chain.step()
    chain.step(whole=True)
    chain.finish()
    assert list(chain.count.out("late")) == []
    assert found(chain.count) == truth([rows for each in batches.values() for rows in each])


def test_a_part_of_a_source_batch_does_not_advance_the_watermark(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    seconds = [60, 0, 1, 2]
    chain.put("one", [{"word": "a", "at": second * SECOND} for second in seconds])
    for end in (1, 2, 4):  # the newest row comes first, the old ones in later batches
        chain.keep.run_to({"one": end}, 1)
        chain.count.run_to({"kept": end}, 2)
    chain.finish()
    assert list(chain.count.out("late")) == []
    assert found(chain.count) == {("a", 60): 1, ("a", 0): 3}


def test_a_time_that_an_operator_derives_waits_for_the_whole_source_batch(tmp_path: Path) -> None:
    """Of a column that its input does not have, a commit says only whether it is complete."""
    pipeline = Pipeline("derived")
    pipeline.topic("lines", "second long", external=True)
    pipeline.topic("rows", COLUMNS)

    @pipeline.batches(reads="lines", writes="rows")
    def parse(batch: pa.RecordBatch) -> dict[str, Any]:
        times = pc.multiply(batch["second"], SECOND).cast(TIMESTAMP)
        return {"word": ["a"] * len(times), "at": times}

    count = pipeline.sliced("rows", "counted", name="count", slices=5, delay_s=DELAY_S)
    count(windows(by="word", size_s=SIZE_S, time="at"))
    first, last = (ByHand(tmp_path / "run", pipeline, name) for name in ("parse", "count"))
    first.put([{"second": second} for second in (60, 0, 1, 2)])
    for end in (1, 2, 4):  # the newest row comes first, the old ones in later batches
        first.run(end, 1)
        last.run(end, 2)
    for end, second in ((5, LAST_S), (6, LAST_S + 1)):
        first.put([{"second": second}])
        first.run(end, 1)
        last.run(end, 2)
    assert found(last) == {("a", 60): 1, ("a", 0): 3}


def test_a_source_that_is_started_again_knows_the_times_that_it_has_read(tmp_path: Path) -> None:
    """Each batch here is planned by a new process; the newest row came two batches ago."""
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    chain.put("one", [{"word": "a", "at": second * SECOND} for second in (60, 0)])
    for end in (1, 2):
        chain.keep.run_to({"one": end}, 1)
    for end in (1, 2):
        chain.count.run_to({"kept": end}, 2)
    hand = chain.count
    start = {"at": dict(hand.at), "skips": {}}
    end = hand.mind().next_offset(start)
    assert end["mark"] == 1  # the watermark has passed the first window: a batch closes it
    hand.run_between(start, end, 2)
    assert found(hand) == {("a", 0): 1}


def test_a_row_older_than_the_source_batches_before_it_is_late(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    for second in (0, 60, 0):
        chain.put("one", [{"word": "a", "at": second * SECOND}])
        chain.step(whole=True)
    chain.finish()
    assert len(list(chain.count.out("late"))) == 1
    assert found(chain.count) == {("a", 0): 1, ("a", 60): 1}


def test_a_last_part_that_is_filtered_out_completes_its_source_batch(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    rows = [{"word": word, "at": second * SECOND} for word, second in (("a", 60), ("x", 0))]
    chain.put("one", rows)
    for end in (1, 2):
        chain.keep.run_to({"one": end}, 1)
    kept = Topic.open(chain.keep.layout.topic("kept"))
    assert kept.newest is not None
    assert not kept.newest.is_complete
    assert list(complete_ends(kept, 0, 1)) == [1]


def test_commits_say_where_source_batches_end(tmp_path: Path) -> None:
    topic = Topic.create(tmp_path / "t", pa.schema({"n": pa.int64()}))
    with TopicWriter(topic, "w") as writer:
        writer.append(pa.table({"n": [1, 2]}))
    for batch, is_complete in enumerate([False, False, True, False]):
        segment = topic.segment_writer()
        segment.write(pa.table({"n": [batch], "_event": pa.array([0], TIMESTAMP)}))
        written = segment.close()
        assert written is not None
        topic.publish("op", batch, [written], 0.0, is_complete=is_complete)
    again = Topic.open(topic.directory)
    assert list(complete_ends(again, 0, 6)) == [2, 5]
    assert list(complete_ends(again, 2, 4)) == []
    assert list(complete_ends(again, 1, 5)) == [2, 5]
    mark_complete(again)
    assert list(complete_ends(again, 0, 6)) == [2, 5, 6]
    (topic.directory / COMPLETE).write_text("{")
    with pytest.raises(Exception, match=COMPLETE):
        list(complete_ends(again, 0, 6))


def test_commits_carry_the_time_of_the_slowest_input(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=True)
    for topic, second in (("one", 60), ("two", 5)):
        chain.put(topic, [{"word": "a", "at": second * SECOND}])
    chain.keep.run_to({"one": 1, "two": 1}, 1)
    kept = Topic.open(chain.keep.layout.topic("kept")).newest
    assert kept is not None
    assert kept.event_times["at"] == 5 * SECOND


def test_windows_close_without_another_row(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    for second in (0, 60):
        chain.put("one", [{"word": "a", "at": second * SECOND}])
        chain.step(whole=True)
    hand = chain.count
    assert found(hand) == {}
    start = {"at": dict(hand.at), "skips": {}}
    end = hand.mind().next_offset(start)
    assert end == {"at": hand.at, "skips": {}, "mark": 1}
    hand.run_between(start, end, 2)
    assert found(hand) == {("a", 0): 1}
    assert hand.mind().next_offset(end) == end


def test_a_new_watermark_alone_is_no_batch_for_a_state_without_timers(tmp_path: Path) -> None:
    pipeline = Pipeline("counted")
    pipeline.topic("words", "word string", external=True)
    pipeline.sliced("words", "counted", name="count", slices=2)(counts(by="word"))
    hand = ByHand(tmp_path / "run", pipeline, "count")
    hand.put([{"word": "a"}, {"word": "b"}])
    hand.run(2, 1)
    assert hand.on_disk()
    record = hand.log.last()
    assert record is not None
    assert record.state is not None
    assert compute_watermark(record, 0) != record.state.watermark
    end = {"at": dict(hand.at), "skips": {}}
    assert hand.mind().next_offset(end) == end


def test_an_idle_input_does_not_hold_the_watermark(tmp_path: Path) -> None:
    now = 1000.0
    topics = {}
    for name in ("busy", "idle"):
        topics[name] = Topic.create(tmp_path / name, pa.schema({"at": TIMESTAMP}))
        with TopicWriter(topics[name], "w", clock=lambda: now) as writer:
            writer.append(pa.table({"at": pa.array([5], TIMESTAMP)}))
    log = BatchLog(tmp_path / "batches")
    progress = InputProgress(topics, log, idle_s=60.0, clock=lambda: now)
    ends = {"busy": 1, "idle": 1}
    assert list(progress.idle_inputs(ends)) == []
    now += 61
    with TopicWriter(topics["busy"], "w", clock=lambda: now) as writer:
        writer.append(pa.table({"at": pa.array([90], TIMESTAMP)}))
    assert list(progress.idle_inputs(ends)) == ["idle"]
    resumed = InputProgress(topics, log, idle_s=60.0, clock=lambda: now)
    assert list(resumed.idle_inputs(ends)) == [], "no time has passed since this start"
    assert list(progress.idle_inputs({"busy": 2, "idle": 0})) == [], "rows that wait are not idle"
    read = {name: progress.read(name, 0, topic.end) for name, topic in topics.items()}
    inputs = {name: state.progress for name, state in read.items()}
    assert find_slowest_times(inputs)["at"] == 5
    assert find_slowest_times(inputs, ["idle"])["at"] == 90


def test_segments_without_statistics_are_read_for_them(tmp_path: Path) -> None:
    topic = Topic.create(tmp_path / "t", pa.schema({"at": TIMESTAMP}))
    segment = topic.segment_writer()
    stamps = pa.array([7, 3], TIMESTAMP)
    segment.write(pa.table({"at": stamps, "_event": stamps}))
    written = segment.close()
    assert written is not None
    assert written.newest == {"at": 7, "_event": 7}
    topic.publish("w", 0, [replace(written, newest=None)], 0.0)
    progress = InputProgress({"t": Topic.open(topic.directory)}, BatchLog(tmp_path / "b"))
    assert progress.read("t", 0, 2).progress["at"].complete == 7


def test_null_negative_and_far_future_times(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "run", random.Random(1), union=False)
    year_9999 = 253_370_764_800 * SECOND
    steps = [
        [{"word": "a", "at": None}, {"word": "a", "at": -15 * SECOND}],  # before 1970
        [{"word": "a", "at": 3 * SECOND}],
        [{"word": "a", "at": year_9999}],  # a clock that is wrong
        [{"word": "b", "at": 4 * SECOND}],
        [{"word": "b", "at": 5 * SECOND}],
    ]
    for rows in steps:
        chain.put("one", rows)
        chain.step(whole=True)
    late = [row["at"] for row in chain.count.out("late")]
    # a row without a time belongs nowhere; the row of 9999 has advanced the watermark, so all
    # that comes after it is late: counted, kept and told, not silently wrong
    assert late.count(None) == 1
    assert len(late) == 3
    assert found(chain.count) == {("a", -20): 1, ("a", 0): 1}
