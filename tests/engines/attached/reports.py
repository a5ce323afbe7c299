"""Builders of progress reports in the form of Spark's."""

from datetime import UTC, datetime
from typing import Any

BEGAN = 1_800_000_000.0


def make_report(
    batch: int,
    at: float,
    *,
    work_s: float | None = 1.0,
    overhead_s: float = 0.2,
    sources: list[dict[str, Any]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the report of a trigger that began `at` seconds after `BEGAN`; no work: no batch."""
    time = datetime.fromtimestamp(BEGAN + at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    durations = {} if work_s is None else {"addBatch": round(work_s * 1000)}
    durations["triggerExecution"] = round(((work_s or 0.0) + overhead_s) * 1000)
    return {
        "id": "7e5f",
        "runId": "a1",
        "name": "words",
        "timestamp": time,
        "batchId": batch,
        "durationMs": durations,
        "stateOperators": [],
        "sources": sources or [],
        "sink": {"description": "noop", "numOutputRows": -1},
        **fields,
    }


def kafka(start: list[int] | None, end: list[int], latest: list[int]) -> dict[str, Any]:
    """Return a Kafka source by the offsets of its partitions."""

    def offset(values: list[int]) -> dict[str, Any]:
        return {"bids": {str(number): value for number, value in enumerate(values)}}

    return {
        "description": "KafkaV2[Subscribe[bids]]",
        "startOffset": None if start is None else offset(start),
        "endOffset": offset(end),
        "latestOffset": offset(latest),
        "numInputRows": sum(end) - sum(start or end),
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "metrics": {"avgOffsetsBehindLatest": "3.0"},
    }


def plain(start: Any, end: Any, latest: Any, rows: int, description: str = "x") -> dict[str, Any]:
    """Return a source with any offsets."""
    return {
        "description": description,
        "startOffset": start,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": rows,
    }
