"""Records of batches: the first counts, and old ones can be read."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools.recording import batch, task

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import MAX_RECORDS, BatchLog
from penstock.engines.spark.recovery.batch_record_check import check_records
from penstock.errors import InputError, PenstockError

RECORDED = Path(__file__).parents[2] / "recorded" / "spark-batches.jsonl"


def test_the_first_record_of_a_batch_wins(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    first = batch(0, tasks=[task(rows=2)])
    assert log.put(first) == first
    assert log.put(batch(0, tasks=[task(rows=1), task(rows=1)])) == first
    assert log.get(0) == first


def test_a_record_of_other_rows_is_not_taken_for_the_same_batch(tmp_path: Path) -> None:
    log = BatchLog(tmp_path / "copy")
    first = batch(3, tasks=[task(rows=2)])
    log.put(first)
    with pytest.raises(PenstockError, match="copy: batch 3 is planned with a 0 to 5, but was"):
        log.put(batch(3, tasks=[task(rows=5)]))
    assert log.get(3) == first


def test_offsets_of_other_sources_are_compared_as_spark_wrote_them(tmp_path: Path) -> None:
    log, ingest = BatchLog(tmp_path / "files"), replace(batch(0), start={}, end={})
    text = 'v1\n{"batchTimestampMs":%d}\n{"logOffset":%d}'
    log.put(replace(ingest, offset_log=text % (1, 4)))
    log.put(replace(ingest, offset_log=text % (2, 4)))
    log.put(ingest)  # as an older version wrote it
    with pytest.raises(PenstockError, match="logOffset"):
        log.put(replace(ingest, offset_log=text % (1, 5)))


def test_a_record_is_on_the_disk_before_spark_commits_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure may take Spark's files, but never the record of a committed batch."""
    synced: list[tuple[Path, bool]] = []
    path = tmp_path / f"{0:020d}.json"

    def sync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((place if place == tmp_path else place.parent / "file", path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    BatchLog(tmp_path).put(batch(0))
    # what is in the file before it has its name, then the name
    assert synced == [(tmp_path / "file", False), (tmp_path, True)]


def test_followers_see_each_record_once(tmp_path: Path) -> None:
    log, follower = BatchLog(tmp_path), BatchLog(tmp_path)
    log.put(batch(0))
    log.put(batch(1))
    assert [record.batch for record in follower.read_new()] == [0, 1]
    assert follower.read_new() == []
    log.put(batch(2))
    assert [record.batch for record in follower.read_new()] == [2]
    assert [record.batch for record in BatchLog(tmp_path).read_new()] == [0, 1, 2]


def test_old_records_go(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    for number in range(MAX_RECORDS + 5):
        log.put(batch(number))
    assert len(list(tmp_path.iterdir())) == MAX_RECORDS
    assert BatchLog(tmp_path).next == 5


def test_a_record_of_version_1_can_be_read() -> None:
    line = RECORDED.read_text().splitlines()[0]
    record = BatchRecord.from_json(json.loads(line))
    assert record.replicas == 5
    written = json.loads(json.dumps(record.to_json()))
    assert BatchRecord.from_json(written) == record
    assert {**json.loads(line), "tasks": written["tasks"]}.items() <= written.items()


def _damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    cut = {"empty": b"", "cut": content[:-9], "list": b"[]", "binary": b"\xff\xfe"}
    altered = content.replace(b'"committed_at":1.0', b'"committed_at":2.0')
    path.write_bytes(cut.get(how, altered))
    assert path.read_bytes() != content


@pytest.mark.parametrize("how", ["empty", "cut", "list", "binary", "altered"])
def test_a_damaged_record_is_named_and_found(tmp_path: Path, how: str) -> None:
    log = BatchLog(tmp_path / "batches" / "copy")
    for number in range(3):
        log.put(batch(number))
    assert check_records(tmp_path) == {}
    path = tmp_path / "batches" / "copy" / f"{1:020d}.json"
    _damage(path, how)
    with pytest.raises(InputError) as error:
        BatchLog(path.parent).read_new()
    assert str(path) in str(error.value) and "backup" in error.value.hint
    ((damage,),) = check_records(tmp_path).values()
    assert damage.file == f"batches/copy/{path.name}"
    path.unlink()
    ((damage,),) = check_records(tmp_path).values()
    assert "missing" in damage.problem
    assert [record.batch for record in BatchLog(path.parent).read_new()] == [2]
    path.write_bytes(path.with_name(f"{2:020d}.json").read_bytes())
    ((damage,),) = check_records(tmp_path).values()
    assert (damage.file, damage.problem) == (
        f"batches/copy/{path.name}",
        "holds the record of batch 2",
    )


def test_a_record_without_a_checksum_can_be_read(tmp_path: Path) -> None:
    log, record = BatchLog(tmp_path), batch(0)
    data = record.to_json()
    del data["offset_log"]
    (tmp_path / f"{0:020d}.json").write_text(json.dumps(data))
    assert log.get(0) == record
