"""Totals of each operator over a run: rows in, rows out, and rows that were lost or doubled."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_totals import AHEAD, SINCE, WRITTEN
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.spark_result import OperatorAccount
from penstock.topics.embedded.topic import Topic


def read_accounts(pipeline: Pipeline, layout: RunLayout) -> dict[str, OperatorAccount]:
    """Return the account of each operator that reads topics and keeps records.

    A follower in a chain has one if it ran as a separate operator before.
    """
    followers = {  # what they wrote is counted with those that write it now
        name: replace(operator, writes=None, extra_outputs=())
        for name, operator in pipeline.origin.operators.items()
        if name not in pipeline.operators
    }
    operators = {**pipeline.operators, **followers}
    records = {
        name: record
        for name, operator in operators.items()
        if operator.reads and (record := _last_record(layout, name)) is not None
    }
    written = _sum_written(records.values())
    return {
        name: _account(layout, operators[name], record, written) for name, record in records.items()
    }


def _last_record(layout: RunLayout, name: str) -> BatchRecord | None:
    directory = layout.batches(name)
    return BatchLog(directory).last() if directory.is_dir() else None


def _sum_written(records: Iterable[BatchRecord]) -> Mapping[str, int]:
    """Return the rows written by topic: cutting or joining a chain changes who writes one."""
    written: Counter[str] = Counter()
    for record in records:
        for name, rows in record.totals.items():
            if name.startswith(WRITTEN):
                written[name.removeprefix(WRITTEN)] += rows
    return written


def _account(
    layout: RunLayout, operator: Operator, record: BatchRecord, written: Mapping[str, int]
) -> OperatorAccount:
    totals: Mapping[str, Any] = record.totals
    names = ("rows_in", "rows_out", "filtered", "expanded", "late", "put_aside", "dropped")
    ends = {topic: Topic.open(layout.topic(topic)).end for topic in record.end}
    waiting = sum(max(0, end - record.end[topic]) for topic, end in ends.items())
    main, *others = _not_published(layout, operator, totals, written) or [0]
    missing = [main if waiting else main - totals.get(AHEAD, 0), *others]
    return OperatorAccount(
        **{name: totals.get(name, 0) for name in names},
        waiting=waiting,
        lost=totals.get("skipped", 0) + sum(max(0, rows) for rows in missing),
        doubled=totals.get("repeated", 0) + sum(max(0, -rows) for rows in missing),
    )


def _not_published(
    layout: RunLayout, operator: Operator, totals: Mapping[str, Any], written: Mapping[str, int]
) -> list[int]:
    """Rows of all records that its topics lack; below 0: that they have too many."""
    if totals.get(SINCE) != 0:
        return []
    return [
        written.get(topic, 0) - Topic.open(layout.topic(topic)).end for topic in operator.outputs
    ]
