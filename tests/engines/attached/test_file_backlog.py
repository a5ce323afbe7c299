"""Files of a source: when they arrived, which of them wait, and the rows of a file."""

import json
from pathlib import Path

import pytest
from tests.engines.attached.reports import plain
from tests.engines.attached.test_source_position import read

from penstock.engines.attached.file_backlog import FileBacklog, FileListing
from penstock.engines.attached.source_position import SourcePosition
from penstock.engines.spark.ingest.backlog import FileCount


class Directory:
    """Files that are written at a steady pace, and batches that read them."""

    def __init__(self, files_per_s: float = 4.0, before: int = 0) -> None:
        self.files_per_s, self.before, self.now = files_per_s, before, 0.0
        self.by_batch: dict[int, int] = {}
        self.listing_at: float | None = None

    def plan(self) -> None:
        """Plan a batch with all files that wait."""
        self.by_batch[len(self.by_batch)] = int(self.waiting)

    @property
    def waiting(self) -> float:
        return int(self.now * self.files_per_s) - sum(self.by_batch.values())

    def list_files(self) -> FileListing:
        return FileListing(
            at=self.now if self.listing_at is None else self.listing_at,
            read=self.before + sum(self.by_batch.values()),
            waiting=self.waiting,
            by_batch=dict(self.by_batch),
        )

    def make_source(self) -> SourcePosition:
        files = FileBacklog(list_files=self.list_files, window_s=60.0)
        return SourcePosition(name="q/0", window_s=60.0, files=files)


def take(source: SourcePosition, batch: int, rows: int, at: float) -> None:
    start = {"logOffset": batch - 1} if batch else None
    report = plain(start, {"logOffset": batch}, None, rows, "FileStreamSource[file:/in]")
    source.take(read(report), at, is_batch=True)


def test_the_files_of_the_running_batch_and_those_behind_it_are_the_backlog():
    directory = Directory()
    source = directory.make_source()
    directory.now = 2.0
    directory.plan()
    directory.now = 10.0
    take(source, 0, rows=80, at=2.0)  # 8 files
    assert (source.backlog, source.unit) == (32.0, "files")
    assert source.end - source.taken == 320
    directory.plan()  # the next batch takes them all and is not finished
    directory.now = 12.0
    source.extrapolate(12.0)
    assert source.backlog == 40.0
    assert source.end - source.taken == 400


def test_files_that_grow_offer_more_rows():
    """As many files as before, ten times as large: Spark's reports are all that says so."""
    directory = Directory()
    source = directory.make_source()
    for batch in range(60):
        directory.now = 2.0 * (batch + 1)
        directory.plan()
        take(source, batch, rows=8 * (10 if batch < 30 else 100), at=directory.now)
        if batch == 29:
            assert source.rate == pytest.approx(40.0)
    assert source.rate == pytest.approx(400.0)


def test_a_batch_that_takes_long_does_not_change_what_is_offered():
    """Each batch takes three times as long as the one before, and so has three times the files."""
    directory = Directory()
    source = directory.make_source()
    planned_at = directory.now = 2.0
    source.extrapolate(planned_at)
    directory.plan()
    for batch, length_s in enumerate((2.0, 6.0, 18.0, 54.0)):
        while directory.now < planned_at + length_s:
            directory.now += 2.0
            source.extrapolate(directory.now)
        next_at = directory.now
        directory.plan()
        take(source, batch, rows=10 * directory.by_batch[batch], at=planned_at)
        planned_at = next_at
        assert source.rate == pytest.approx(40.0, rel=0.05)
        assert source.end == pytest.approx(40 * directory.now, abs=10)


def test_nothing_new_is_no_arrival_whatever_a_file_holds():
    directory = Directory(files_per_s=0.0)
    directory.now = 1.0
    directory.by_batch = {0: 2}
    source = directory.make_source()
    for batch, rows in enumerate((10, 20, 30)):
        directory.by_batch[batch] = 2
        directory.before = -2 * batch  # the files were there before
        directory.now += 1.0
        take(source, batch, rows, directory.now)
    assert source.rate == 0.0


def test_files_from_before_do_not_count_and_late_listings_are_read_later():
    directory = Directory(before=1000)
    source = directory.make_source()
    directory.now = 2.0
    directory.listing_at = 0.0  # older than the batch
    take(source, 0, rows=80, at=2.0)
    assert source.end == source.taken == 80  # no file's rows are known
    directory.listing_at = None
    directory.plan()
    source.extrapolate(3.0)
    assert source.files is not None
    assert source.files.rows_per_file == 10.0


def test_files_that_cannot_be_listed_leave_what_is_read():
    files = FileBacklog(list_files=lambda: None, window_s=60.0)
    source = SourcePosition(name="q/0", window_s=60.0, files=files)
    take(source, 0, rows=100, at=0.0)
    take(source, 1, rows=300, at=10.0)
    source.extrapolate(20.0)
    assert not source.has_backlog
    assert source.rate == 30.0


def test_files_of_batches_are_read_from_the_log_of_spark(tmp_path: Path) -> None:
    """Also those that Spark has merged into one file of the log."""
    data, log = tmp_path / "in", tmp_path / "log"
    data.mkdir()
    log.mkdir()
    for number in range(6):
        (data / f"{number}.json").write_text("{}")

    def entry(number: int, batch: int) -> str:
        path = f"file://{data}/{number}.json"
        return json.dumps({"path": path, "timestamp": 1, "batchId": batch})

    (log / "1.compact").write_text("\n".join(["v1", entry(0, 0), entry(1, 0), entry(2, 1)]))
    (log / "1").write_text("\n".join(["v1", entry(2, 1)]))
    (log / "2").write_text("\n".join(["v1", entry(3, 2)]))
    files = FileCount(data, log)
    assert files.count() == 2
    assert files.by_batch == {0: 2, 1: 1, 2: 1}
