"""Totals of each operator over a run: rows in, rows out, and rows that were lost or doubled."""

from collections.abc import Mapping
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
    """Return the account of each operator that reads topics and keeps records."""
    totals = {}
    for name, operator in pipeline.operators.items():
        directory = layout.batches(name)
        record = BatchLog(directory).last() if directory.is_dir() and operator.reads else None
        if record is not None:
            totals[name] = _account(layout, operator, record)
    return totals


def _account(layout: RunLayout, operator: Operator, record: BatchRecord) -> OperatorAccount:
    totals: Mapping[str, Any] = record.totals
    names = ("rows_in", "rows_out", "filtered", "expanded", "late", "put_aside", "dropped")
    ends = {topic: Topic.open(layout.topic(topic)).end for topic in record.end}
    waiting = sum(max(0, end - record.end[topic]) for topic, end in ends.items())
    main, *others = _not_published(layout, operator, totals) or [0]
    missing = [main if waiting else main - totals.get(AHEAD, 0), *others]
    return OperatorAccount(
        **{name: totals.get(name, 0) for name in names},
        waiting=waiting,
        lost=totals.get("skipped", 0) + sum(max(0, rows) for rows in missing),
        doubled=totals.get("repeated", 0) + sum(max(0, -rows) for rows in missing),
    )


def _not_published(layout: RunLayout, operator: Operator, totals: Mapping[str, Any]) -> list[int]:
    """Rows of the operator's records that its topics lack; below 0: that they have too many."""
    if totals.get(SINCE) != 0:
        return []
    return [
        totals.get(f"{WRITTEN}{topic}", 0) - Topic.open(layout.topic(topic)).end
        for topic in operator.outputs
    ]
