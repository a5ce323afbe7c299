"""Batches of operators on Spark: run them, read their records, compute rows per second."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout

#: Rows and seconds of a batch.
BatchTime = tuple[int, float]


def link_topics(run: Path, topics: Sequence[Path]) -> RunLayout:
    """Return the layout of a new run that reads existing topics."""
    layout = RunLayout(run)
    for path in topics:
        link = layout.topic(path.name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    return layout


def drain(engine: SparkEngine, max_s: float) -> None:
    """Advance a started engine until its topics are empty, for at most `max_s` seconds."""
    end_s = engine.at + max_s
    while not engine.is_drained and engine.at < end_s:
        engine.advance(0.25)
        assert not engine.operator_errors, engine.operator_errors


def read_records(engine: SparkEngine, operator: str, first: int = 0) -> list[BatchRecord]:
    """Return the batch records of an operator from batch `first` on.

    Batches without tasks, which only reassign state, are left out.
    """
    log = BatchLog(engine.layout.batches(operator))
    return [record for record in log.read_new() if record.batch >= first and record.tasks]


def next_batch(engine: SparkEngine, operator: str) -> int:
    """Return the number of the batch that an operator commits next."""
    last = BatchLog(engine.layout.batches(operator)).last()
    return 0 if last is None else last.batch + 1


def time_batches(records: Sequence[BatchRecord]) -> list[BatchTime]:
    """Return the rows of each batch but the first, and the time since the commit before it."""
    return [(b.rows_in, b.committed_at - a.committed_at) for a, b in pairwise(records)]


def select_full(batches: Iterable[BatchTime], share: float) -> list[BatchTime]:
    """Leave out batches that still grow, and the rest at the end: below a share of the largest."""
    given = list(batches)
    largest = max((rows for rows, _ in given), default=0)
    return [batch for batch in given if batch[0] > share * largest]


def rows_per_s(batches: Sequence[BatchTime]) -> float:
    """Return the rows per second of some batches together."""
    return sum(rows for rows, _ in batches) / sum(seconds for _, seconds in batches)
