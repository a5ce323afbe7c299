"""Builds a snapshot from the answers of Prometheus: a pure function of values by operator."""

from collections.abc import Mapping
from typing import Any

from penstock.core.snapshot import Snapshot
from penstock.core.snapshot_json import parse_snapshot
from penstock.errors import InputError, NotReadyError
from penstock.prometheus.metric_map import MEASURES, SHARES, MetricMap
from penstock.prometheus.query_client import PrometheusClient, by_label

Answers = Mapping[str, Mapping[str, float]]
Edges = Mapping[str, tuple[str, ...]]


def read_snapshot(
    client: PrometheusClient, mapped: MetricMap, at: float, now: float | None = None
) -> Snapshot:
    """Ask all queries of a map for the same moment; `NotReadyError` while operators are missing."""
    answers = {
        name: by_label(client.query(query, now), mapped.operator_label)
        for name, query in mapped.queries.items()
    }
    upstream = dict(mapped.topology)
    if mapped.edges_query:
        upstream = {}
        for sample in client.query(mapped.edges_query, now):
            name = sample.labels.get(mapped.operator_label)
            feeder = sample.labels.get(mapped.upstream_label)
            if name is not None and feeder is not None:
                upstream[name] = (*upstream.get(name, ()), feeder)
    return build_snapshot(at, answers, upstream)


def build_snapshot(at: float, answers: Answers, upstream: Edges) -> Snapshot:
    """Return the snapshot; a measure without a value is unknown, never 0.

    >>> answers = {"running": {"map": 2.0}, "busy": {"map": 0.5}}
    >>> build_snapshot(5.0, answers, {}).operators["map"].busy
    0.5
    """
    running = {name: round(n) for name, n in answers.get("running", {}).items() if round(n) >= 1}
    wanted = {name for name, feeders in upstream.items() for name in (name, *feeders)}
    if missing := sorted(wanted - set(running)):
        raise NotReadyError(f"Prometheus has no running replicas of {', '.join(missing)}")
    if not running:
        raise NotReadyError("Prometheus has no running replicas of any operator")
    operators = {name: _operator(name, k, answers, upstream) for name, k in running.items()}
    sources = [name for name in operators if not upstream.get(name)]
    offered = {
        name: rate
        for name, rate in answers.get("offered", {}).items()
        if name in sources and rate >= 0
    }
    try:
        return parse_snapshot({"at": at, "offered": offered, "operators": operators})
    except InputError as error:
        raise NotReadyError(f"the series make no snapshot: {error}") from None


def _operator(name: str, running: int, answers: Answers, upstream: Edges) -> dict[str, Any]:
    data: dict[str, Any] = {"upstream": list(upstream.get(name, ())), "parallelism": running}
    for field, query in (("min_parallelism", "min_replicas"), ("max_parallelism", "max_replicas")):
        value = answers.get(query, {}).get(name)
        if value is not None and value >= 1:
            data[field] = round(value)
    for measure in MEASURES:
        value = answers.get(measure, {}).get(name)
        if value is None or (value < 0 and measure != "queue_growth"):
            continue
        data[measure] = min(value, 1.0) if measure in SHARES else value
    return data
