"""A run as Arrow tables: one row per tick, per tick and operator, and per decision and operator."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.core.snapshot_json import MEASURES
from penstock.runs.result import RunResult

_S, _N, _T = pa.float64(), pa.int64(), pa.string()

TICKS = pa.schema(
    [
        ("at_s", _S),
        ("offered_per_s", _S),
        ("replicas", _N),
        ("requested", _N),
        ("executors", _N),
        ("latency_mean_s", _S),
        ("latency_p95_s", _S),
        ("offered_records", _N),
        ("processed_records", _N),
        ("dropped_records", _N),
        ("backlog_records", _N),
        ("applied", pa.bool_()),
        ("error", _T),
    ]
)
OPERATORS = pa.schema(
    [
        ("at_s", _S),
        ("operator", _T),
        ("running", _N),
        ("requested", _N),
        ("arrivals_per_s", _S),
        *((name, _S) for name in MEASURES),
    ]
)
DECISIONS = pa.schema(
    [
        ("at_s", _S),
        ("operator", _T),
        ("current", _N),
        ("proposed", _N),
        ("wanted", _N),
        ("reason", _T),
        ("formula", _T),
        ("guards", pa.list_(_T)),
        ("applied", pa.bool_()),
    ]
)
RESULTS = pa.schema(
    [
        ("run", _T),
        ("policy", _T),
        ("workload", _T),
        ("replicas_mean", _S),
        ("replicas_max", _N),
        ("replica_hours", _S),
        ("latency_mean_s", _S),
        ("latency_p50_s", _S),
        ("latency_p95_s", _S),
        ("latency_p99_s", _S),
        ("objective_s", _S),
        ("above_objective", _S),
        ("rescales", _N),
        ("offered_records", _N),
        ("processed_records", _N),
        ("dropped_records", _N),
    ]
)


def ticks_table(ticks: Iterable[Tick]) -> pa.Table:
    """Return one row per tick; measures that are not known are null."""
    return pa.Table.from_pylist([_tick_row(tick) for tick in ticks], TICKS)


def operators_table(ticks: Iterable[Tick]) -> pa.Table:
    """Return one row per tick and operator with everything that was measured."""
    rows = [_operator_row(tick, name) for tick in ticks for name in tick.status.running]
    return pa.Table.from_pylist(rows, OPERATORS)


def decisions_table(ticks: Iterable[Tick]) -> pa.Table:
    """Return one row per decision and operator, also where nothing changed."""
    rows = [row for tick in ticks for row in _decision_rows(tick)]
    return pa.Table.from_pylist(rows, DECISIONS)


def results_table(results: Mapping[str, RunResult]) -> pa.Table:
    """Return one row per run with its figures."""
    return pa.Table.from_pylist([_result_row(*each) for each in results.items()], RESULTS)


def _tick_row(tick: Tick) -> dict[str, Any]:
    status = tick.status
    latency = merge_histograms(status.latency.values())
    offered = tick.snapshot.offered if tick.snapshot is not None else {}
    return {
        "at_s": tick.at,
        "offered_per_s": sum(offered.values()) if offered else None,
        "replicas": sum(status.running.values()),
        "requested": sum(status.requested.values()),
        "executors": status.executors,
        "latency_mean_s": latency.mean if latency.count else None,
        "latency_p95_s": latency.percentile(95) if latency.count else None,
        "offered_records": status.offered_records,
        "processed_records": status.processed_records,
        "dropped_records": status.dropped_records,
        "backlog_records": status.backlog_records,
        "applied": tick.applied,
        "error": tick.error or None,
    }


def _operator_row(tick: Tick, name: str) -> dict[str, Any]:
    snapshot = tick.snapshot
    operator = snapshot.operators.get(name) if snapshot is not None else None
    measures = {measure: getattr(operator, measure) for measure in MEASURES} if operator else {}
    return {
        "at_s": tick.at,
        "operator": name,
        "running": tick.status.running[name],
        "requested": tick.status.requested.get(name),
        "arrivals_per_s": snapshot.arrival_rate(name) if snapshot and operator else None,
        **measures,
    }


def _decision_rows(tick: Tick) -> Sequence[dict[str, Any]]:
    if tick.decision is None:
        return ()
    return [
        {
            "at_s": tick.at,
            "operator": name,
            "current": target.current,
            "proposed": target.proposal,
            "wanted": target.wanted,
            "reason": str(target.reason),
            "formula": target.why,
            "guards": [f"{s.guard}: {s.before} -> {s.after}" for s in target.steps],
            "applied": tick.applied and name in tick.plan,
        }
        for name, target in tick.decision.targets.items()
    ]


def _result_row(name: str, result: RunResult) -> dict[str, Any]:
    row = {
        "run": name,
        "policy": result.spec.get("policy"),
        "workload": result.spec.get("workload"),
    }
    scores = result.scores
    if scores is None:
        return row
    latency = scores.latency_s
    return row | {
        "replicas_mean": scores.replicas.avg,
        "replicas_max": scores.replicas.max,
        "replica_hours": scores.replica_hours,
        "latency_mean_s": latency.avg,
        "latency_p50_s": latency.p50,
        "latency_p95_s": latency.p95,
        "latency_p99_s": latency.p99,
        "objective_s": scores.slo.objective_s,
        "above_objective": scores.slo.violated_share,
        "rescales": scores.rescales,
        "offered_records": scores.offered_records,
        "processed_records": scores.processed_records,
        "dropped_records": scores.dropped_records,
    }
