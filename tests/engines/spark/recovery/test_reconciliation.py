"""A checkpoint of Spark's that is behind the records: repaired or refused, no row lost."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)
from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.spark_engines import Started, until
from tests.tools.recording import batch

from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.plans import BatchPlan, save_plan
from penstock.engines.spark.recovery.checkpoints import (
    COMMITS,
    OFFSETS,
    find_missing_sources,
    format_commit,
    has_state_version,
    list_batches,
    read_last_batch,
    read_log,
    remove_state_after,
    write_log,
)
from penstock.engines.spark.recovery.reconciliation import reconcile
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import EVENT, parse_schema

#: Rows of a window of the native operator.
WINDOW = 50


def all_kinds(home: Path) -> Pipeline:
    """Files come in, pass an operator of every kind, and go out as files."""
    pipeline = Pipeline("kinds")
    for name, schema in (
        ("rows", "id long"),
        ("copied", "id long"),
        ("framed", "id long, twice long"),
        ("counts", "id long, n long"),
        ("windows", "start timestamp, n long"),
    ):
        pipeline.topic(name, schema)

    @pipeline.ingest("rows")
    def files(spark: SparkSession) -> DataFrame:
        return spark.readStream.schema("id long").json(str(home / "in"))

    @pipeline.batches("rows", "copied")
    def copy(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    @pipeline.operator("copied", "framed")
    def frame(df: DataFrame) -> DataFrame:
        return df.withColumn("twice", F.col("id") * 2)

    @pipeline.sliced("copied", "counts", key="id", state="n long", slices=4)
    def count(rows: pa.RecordBatch, state: State) -> dict[str, Any]:
        before = state.get(rows.select(["id"])).column("n").to_pylist()
        now = pa.array([(n or 0) + 1 for n in before], pa.int64())
        state.put(pa.RecordBatch.from_arrays([rows["id"], now], names=["id", "n"]))
        return {"id": rows["id"], "n": now, EVENT: rows[EVENT]}

    @pipeline.native("rows", "windows")
    def window(df: DataFrame) -> DataFrame:
        timed = df.withColumn("at", F.timestamp_seconds("id")).withWatermark("at", "0 seconds")
        sums = timed.groupBy(F.window("at", f"{WINDOW} seconds")).agg(F.count("*").alias("n"))
        return sums.select(F.col("window.start").alias("start"), "n")

    @pipeline.egress("framed")
    def out(df: DataFrame) -> DataStreamWriter:
        return df.writeStream.format("json").option("path", str(home / "out"))

    return pipeline


def put(home: Path, first: int, end: int) -> None:
    """Let a file come in, whole."""
    (home / "in").mkdir(exist_ok=True)
    written = home / "written"
    written.write_text("".join(json.dumps({"id": i}) + "\n" for i in range(first, end)))
    written.rename(home / "in" / f"{first:06}.json")


def column(layout: RunLayout, topic: str, name: str) -> list[Any]:
    rows = Topic.open(layout.topic(topic))
    return [v for part in rows.read(rows.first, rows.end) for v in part[name].to_pylist()]


def written_out(home: Path) -> list[int]:
    """Ids that Spark's file sink has committed."""
    names: set[str] = set()
    for path in (home / "out" / "_spark_metadata").glob("[0-9]*"):
        names |= {json.loads(line)["path"] for line in path.read_text().splitlines()[1:]}
    texts = [Path(name.removeprefix("file://")).read_text() for name in names]
    lines = [line for text in texts for line in text.splitlines()]
    return sorted(json.loads(line)["id"] for line in lines)


def lose(layout: RunLayout, operator: str, how: str) -> None:
    """Lose what a power failure may take: the newest files, or what is in them."""
    checkpoint = layout.checkpoint(operator)
    for log in (OFFSETS, COMMITS):
        newest = checkpoint / log / str(list_batches(checkpoint, log)[-1])
        newest.unlink() if how == "missing" else newest.write_bytes(b"")


@pytest.mark.spark
def test_what_spark_has_lost_is_rebuilt_and_no_row_is_lost(
    started: Started, layout: RunLayout, tmp_path: Path
) -> None:
    pipeline = all_kinds(tmp_path)

    def go(end: int) -> SparkEngine:
        put(tmp_path, end - 100, end)
        engine = started.engine(all_kinds(tmp_path), layout=layout)

        def is_done() -> bool:
            tops = [Topic.open(layout.topic(n)).end for n in ("rows", "framed", "counts")]
            read = read_last_batch(layout.checkpoint("window"))
            is_read = read is not None and read.is_committed and read.ends.get("rows") == end
            return tops == [end] * 3 and is_read and len(written_out(tmp_path)) == end

        until(engine, is_done, 400.0)
        engine.stop()
        return engine

    def check(end: int) -> None:
        assert sorted(column(layout, "counts", "id")) == list(range(end))
        assert set(column(layout, "counts", "n")) == {1}
        # windows that the watermark of the batch before has passed
        starts = [int(at.timestamp()) for at in column(layout, "windows", "start")]
        assert sorted(starts) == list(range(0, WINDOW * len(starts), WINDOW))
        assert set(column(layout, "windows", "n")) <= {WINDOW}
        assert written_out(tmp_path) == list(range(end))

    assert go(100).repairs == []
    recorded = [name for name, op in pipeline.operators.items() if op.kind != "egress"]
    for name in recorded:
        lose(layout, name, "missing")
    assert [text.partition(":")[0] for text in go(200).repairs] == recorded
    check(200)
    for name in ("copy", "frame", "count"):
        shutil.rmtree(layout.checkpoint(name))
    for name in ("files", "window"):
        lose(layout, name, "empty")
    started.engines.clear()  # which are stopped
    layout.run.rename(tmp_path / "moved")  # a directory may have another name by then
    layout = RunLayout(tmp_path / "moved")
    assert [text.partition(":")[0] for text in go(300).repairs] == recorded
    check(300)
    assert len(column(layout, "windows", "n")) >= 3

    refused(pipeline, layout, "files", lambda at: shutil.rmtree(at), "its source had written")
    refused(pipeline, layout, "window", lambda at: shutil.rmtree(at), "own state of version")
    refused(pipeline, layout, "out", lambda at: shutil.rmtree(at), "300 were written")
    refused(pipeline, layout, "out", lambda _: lose(layout, "out", "missing"), "300 were written")
    assert reconcile(pipeline, layout) == []


def refused(
    pipeline: Pipeline, layout: RunLayout, name: str, damage: Callable[[Path], None], problem: str
) -> None:
    """Damage a checkpoint, see that a start refuses it and touches nothing, and restore it."""
    checkpoint, backup = layout.checkpoint(name), layout.run / "backup"
    shutil.copytree(checkpoint, backup)
    damage(checkpoint)
    left = sorted(checkpoint.rglob("*"))
    with pytest.raises(InputError) as error:
        reconcile(pipeline, layout)
    assert problem in error.value.problem and error.value.field == name
    assert "restore checkpoints" in error.value.hint
    assert sorted(checkpoint.rglob("*")) == left
    shutil.rmtree(checkpoint, ignore_errors=True)
    backup.rename(checkpoint)


# --- one by one, and without Spark


CONF = '{"batchWatermarkMs":%d,"conf":{"spark.sql.shuffle.partitions":"2"}}'


def log_text(end: int, watermark_ms: int = 0) -> str:
    return f'v1\n{CONF % watermark_ms}\n{{"at": {{"a": {end}}}, "skips": {{}}}}'


@pytest.fixture
def pipeline() -> Pipeline:
    made = Pipeline("made")
    made.topic("a", "id long", external=True)
    made.topic("b", "id long")

    @made.batches("a", "b")
    def copy(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    @made.egress("b")
    def out(df: DataFrame) -> DataStreamWriter:
        raise NotImplementedError

    return made


@pytest.fixture
def run(tmp_path: Path) -> RunLayout:
    """Five batches of ten rows each, all of them recorded and committed."""
    layout = RunLayout(tmp_path)
    layout.checkpoint("copy").mkdir(parents=True)
    (layout.checkpoint("copy") / "metadata").write_text('{"id":"1f"}')
    for name in ("a", "b"):
        Topic.create(layout.topic(name), parse_schema("id long"))
    log = BatchLog(layout.batches("copy"))
    for number in range(5):
        text = log_text(10 * number + 10, 1000 * number)
        bounds = {"start": {"a": 10 * number}, "end": {"a": 10 * number + 10}}
        log.put(replace(batch(number), **bounds, offset_log=text))
        write_log(layout.checkpoint("copy"), OFFSETS, number, text)
        commit = format_commit(1000 * number + 1000)
        write_log(layout.checkpoint("copy"), COMMITS, number, commit)
    return layout


def files(layout: RunLayout) -> dict[str, str]:
    at = layout.checkpoint("copy")
    return {str(p.relative_to(at)): p.read_text() for p in sorted(at.rglob("*")) if p.is_file()}


def test_what_fits_is_left_as_it_is(pipeline: Pipeline, run: RunLayout) -> None:
    before = files(run)
    assert reconcile(pipeline, run) == []
    assert files(run) == before


@pytest.mark.parametrize("lost", [1, 2, 3, 5])
@pytest.mark.parametrize("how", ["missing", "empty", "cut"])
def test_the_last_two_batches_are_rebuilt(
    pipeline: Pipeline, run: RunLayout, lost: int, how: str
) -> None:
    before, checkpoint = files(run), run.checkpoint("copy")
    for number in range(5 - lost, 5):
        for log in (OFFSETS, COMMITS):
            path = checkpoint / log / str(number)
            content = path.read_bytes()
            path.unlink() if how == "missing" else path.write_bytes(
                content[:-2] if how == "cut" else b""
            )
    (repair,) = reconcile(pipeline, run)
    assert repair.startswith("copy: Spark's log of batch")
    assert {"offsets/3", "offsets/4", "commits/3", "commits/4"} <= files(run).keys()
    for name in ("offsets/3", "offsets/4", "commits/3"):
        assert files(run)[name] == before[name]
    # what the last batch would have told about time is not known: later, never earlier
    assert files(run)["commits/4"] in (before["commits/4"], format_commit(4000))
    assert reconcile(pipeline, run) == []


def test_a_batch_with_a_record_is_committed_also_for_spark(
    pipeline: Pipeline, run: RunLayout
) -> None:
    """Its rows may be removed by now, so that it could not be run again."""
    (run.checkpoint("copy") / COMMITS / "4").unlink()
    assert reconcile(pipeline, run) == []
    assert read_log(run.checkpoint("copy"), COMMITS, 4) == format_commit(4000)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_query_without_metadata_gets_new_ones(
    pipeline: Pipeline, run: RunLayout, how: str
) -> None:
    """Spark starts no query whose logs are there without them."""
    path = run.checkpoint("copy") / "metadata"
    path.unlink() if how == "missing" else path.write_bytes(b"")
    assert reconcile(pipeline, run) == []
    assert set(json.loads(path.read_text())) == {"id"}


def test_a_batch_that_is_planned_stays_and_one_that_is_half_planned_goes(
    pipeline: Pipeline, run: RunLayout
) -> None:
    path = run.checkpoint("copy") / OFFSETS / "5"
    path.write_text(log_text(60))
    reconcile(pipeline, run)
    assert path.exists()
    path.write_bytes(b"")
    reconcile(pipeline, run)
    assert not path.exists()


def test_a_damaged_commit_of_an_egress_goes_so_that_spark_runs_the_batch_again(
    pipeline: Pipeline, run: RunLayout
) -> None:
    checkpoint = run.checkpoint("out")
    for number in range(2):
        text = log_text(0).replace('"a"', '"b"')
        write_log(checkpoint, OFFSETS, number, text)
        write_log(checkpoint, COMMITS, number, format_commit(0) if not number else "")
    assert reconcile(pipeline, run) == []
    assert (list_batches(checkpoint, OFFSETS), list_batches(checkpoint, COMMITS)) == ([0, 1], [0])


def _other_offsets(run: RunLayout) -> None:
    write_log(run.checkpoint("copy"), OFFSETS, 4, log_text(45))


def _no_records(run: RunLayout) -> None:
    shutil.rmtree(run.batches("copy"))


def _old_record(run: RunLayout) -> None:
    log = BatchLog(run.batches("copy"))
    record = log.last()
    assert record is not None
    (run.batches("copy") / f"{4:020d}.json").unlink()
    log.put(replace(record, offset_log=""))
    (run.checkpoint("copy") / OFFSETS / "4").unlink()


def _everything(run: RunLayout) -> None:
    topic = Topic.open(run.topic("b"))
    with TopicWriter(topic, "copy") as writer:
        for number in range(5):
            writer.append(pa.table({"id": [number]}))
    for folder in (run.batches("copy"), run.checkpoint("copy")):
        shutil.rmtree(folder)


def _egress(run: RunLayout) -> None:
    save_position(run.topic("b"), "out", 7)


def _egress_plan(run: RunLayout) -> None:
    plan = BatchPlan(start={"b": 0}, end={"b": 9}, planned_at=0.0, tasks=())
    save_plan(run.plan("out"), plan)


def _egress_offsets(run: RunLayout) -> None:
    write_log(run.checkpoint("out"), COMMITS, 0, format_commit(0))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_other_offsets, "batch 4 has other offsets"),
        (_no_records, "batch 4 is committed, but there is no record"),
        (_old_record, "does not have batch 4"),
        (_everything, "topic b has rows of its batch 4, but there is no record"),
        (_egress, "Spark knows rows of topic b up to 0, but 7 were written"),
        (_egress_plan, "Spark knows rows of topic b up to 0, but 9 were written"),
        (_egress_offsets, "batch 0 is committed, but its offsets are missing"),
    ],
)
def test_what_cannot_be_proven_is_refused(
    pipeline: Pipeline, run: RunLayout, damage: Callable[[RunLayout], None], problem: str
) -> None:
    damage(run)
    before = files(run)
    with pytest.raises(InputError) as error:
        reconcile(pipeline, run)
    assert problem in error.value.problem
    assert "restore" in error.value.hint
    assert files(run) == before


def test_an_ingest_without_the_log_of_its_source_is_refused(tmp_path: Path) -> None:
    """Only Spark's checkpoint knows which files were read: they would be read again."""
    pipeline, layout = Pipeline("made"), RunLayout(tmp_path)
    pipeline.topic("a", "id long")

    @pipeline.ingest("a")
    def files(spark: SparkSession) -> DataFrame:
        raise NotImplementedError

    checkpoint, text = layout.checkpoint("files"), f'v1\n{CONF % 0}\n{{"logOffset":0}}'
    read = checkpoint / "sources" / "0" / "0"
    read.parent.mkdir(parents=True)
    read.write_text("v1\n{}")
    (checkpoint / "metadata").write_text('{"id":"1f"}')
    BatchLog(layout.batches("files")).put(replace(batch(0), start={}, end={}, offset_log=text))
    write_log(checkpoint, OFFSETS, 0, text)
    write_log(checkpoint, COMMITS, 0, format_commit(0))
    assert reconcile(pipeline, layout) == []
    read.unlink()
    with pytest.raises(InputError, match="files that were read would be read again") as error:
        reconcile(pipeline, layout)
    assert "restore checkpoints/files" in error.value.hint
    shutil.rmtree(checkpoint)
    with pytest.raises(InputError, match="what its source had written there is gone"):
        reconcile(pipeline, layout)
    assert not checkpoint.exists()


def _state(checkpoint: Path, *versions: int, partitions: int = 2) -> None:
    for part in range(partitions):
        folder = checkpoint / "state" / "0" / str(part)
        folder.mkdir(parents=True, exist_ok=True)
        for version in versions:
            (folder / f"{version}.changelog").write_text("x")
            (folder / f".{version}.changelog.crc").write_text("x")


def test_the_state_that_a_batch_begins_with_must_be_there(tmp_path: Path) -> None:
    assert has_state_version(tmp_path, 0, 2)
    assert not has_state_version(tmp_path, 4, 2)
    _state(tmp_path, 3, 4)
    assert has_state_version(tmp_path, 4, 2)
    assert not has_state_version(tmp_path, 4, 3)
    _state(tmp_path, 1, partitions=5)  # of a time with more partitions
    assert has_state_version(tmp_path, 4, 2)


def test_a_start_refuses_to_rebuild_a_log_whose_state_or_rows_are_missing(
    run: RunLayout, tmp_path: Path
) -> None:
    made, checkpoint = Pipeline("made"), run.checkpoint("copy")
    made.topic("a", "id long", external=True)
    made.topic("b", "id long")

    @made.native("a", "b")
    def copy(df: DataFrame) -> DataFrame:
        raise NotImplementedError

    for log in (OFFSETS, COMMITS):
        (checkpoint / log / "4").unlink()
    with pytest.raises(InputError, match="own state of version 4 is missing") as error:
        reconcile(made, run)
    assert "restore checkpoints/copy from a backup" in error.value.hint
    assert list_batches(checkpoint, OFFSETS) == [0, 1, 2, 3]
    _state(checkpoint, 3, 4)
    before = shutil.copytree(run.topic("a"), tmp_path / "a")
    with TopicWriter(Topic.open(run.topic("a")), "rows") as writer:
        for _ in range(6):
            writer.append(pa.table({"id": range(10)}))
    save_position(run.topic("a"), "copy", 50)
    trim(Topic.open(run.topic("a")), time.time())
    with pytest.raises(InputError, match="rows 40 to 50 of topic a are removed"):
        reconcile(made, run)
    shutil.rmtree(run.topic("a"))
    before.rename(run.topic("a"))
    (repair,) = reconcile(made, run)
    assert "Spark's log of batch 4 was lost; rebuilt from records" in repair
    assert list_batches(checkpoint, COMMITS) == [0, 1, 2, 3]  # the batch runs again


def test_state_of_batches_that_spark_does_not_know_goes(tmp_path: Path) -> None:
    _state(tmp_path, 3, 4, 5, 6)
    remove_state_after(tmp_path, 4)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        *("3.changelog", "4.changelog", ".3.changelog.crc", ".4.changelog.crc")
    }


def test_files_that_were_read_are_known_by_number(tmp_path: Path) -> None:
    text = 'v1\n{}\n{"logOffset":9}'
    assert find_missing_sources(tmp_path, text) == ["sources/*/9"]
    folder = tmp_path / "sources" / "0"
    folder.mkdir(parents=True)
    (folder / "9.compact").write_text("v1")
    assert find_missing_sources(tmp_path, text) == []
    (folder / "9.compact").write_text("")
    assert find_missing_sources(tmp_path, text) == ["sources/*/9"]
    assert find_missing_sources(tmp_path, 'v1\n{}\n{"logOffset":-1}') == []
    assert find_missing_sources(tmp_path, "v1\n{}\n-\n17") == []
