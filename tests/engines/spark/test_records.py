"""Records of batches: the first counts, and old ones can be read."""

import json
from pathlib import Path

from tests.engines.spark.recording import batch, task

from penstock.engines.spark.records import KEPT, BatchLog, BatchRecord

RECORDED = Path(__file__).parents[2] / "recorded" / "spark-batches.jsonl"


def test_the_first_record_of_a_batch_wins(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    first = batch(0, tasks=[task(rows=1)])
    assert log.put(first) == first
    assert log.put(batch(0, tasks=[task(rows=2)])) == first
    assert log.get(0) == first


def test_followers_see_each_record_once(tmp_path: Path) -> None:
    log, follower = BatchLog(tmp_path), BatchLog(tmp_path)
    log.put(batch(0))
    log.put(batch(1))
    assert [record.batch for record in follower.news()] == [0, 1]
    assert follower.news() == []
    log.put(batch(2))
    assert [record.batch for record in follower.news()] == [2]
    assert [record.batch for record in BatchLog(tmp_path).news()] == [0, 1, 2]


def test_old_records_go(tmp_path: Path) -> None:
    log = BatchLog(tmp_path)
    for number in range(KEPT + 5):
        log.put(batch(number))
    assert len(list(tmp_path.iterdir())) == KEPT
    assert BatchLog(tmp_path).next == 5


def test_a_record_of_version_1_can_be_read() -> None:
    line = RECORDED.read_text().splitlines()[0]
    record = BatchRecord.from_json(json.loads(line))
    assert record.replicas == 5
    written = json.loads(json.dumps(record.to_json()))
    assert BatchRecord.from_json(written) == record
    assert {**json.loads(line), "tasks": written["tasks"]}.items() <= written.items()
