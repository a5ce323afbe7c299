"""The curves of a run as JSON: columns in a range of time, with few points that keep the peaks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.runs.decimation import decimate, decimate_times, slice_range, to_json_numbers
from penstock.runs.run_columns import RunColumns

#: Measures of the whole run, and of each operator.
RUN_MEASURES = (
    *("offered_rate", "processed_rate", "backlog", "latency_p50", "latency_p95", "replicas"),
    *("wanted_replicas", "executors", "executors_requested", "dropped"),
    *("hosts", "host_load_mean", "host_load_max", "host_load_min", "moves"),
    *("messages", "copies", "stops", "ideal"),
)
CURVE_MEASURES = ("running", "queue", "messages")
MIN_POINTS, MAX_POINTS = 20, 4000
#: Changes that get a mark of their own; more are thinned out.
MAX_MARKS = 600
#: Operators with a curve of their own.
MAX_OPERATORS = 40


def make_curves(
    columns: RunColumns,
    objective_s: float | None,
    from_s: float | None = None,
    to_s: float | None = None,
    points: int = 1000,
) -> dict[str, Any]:
    """Return times and columns; a column without any known value is left out."""
    points = max(MIN_POINTS, min(points, MAX_POINTS)) // 2 * 2
    times = columns.times
    end_s = float(times[-1]) if len(times) else 0.0
    first, end = slice_range(
        times, -np.inf if from_s is None else from_s, np.inf if to_s is None else to_s
    )
    part = times[first:end]

    def cut(measure: str, operator: str = "") -> list[float | None]:
        return to_json_numbers(decimate(columns.column(measure, operator)[first:end], points))

    known = set(columns.names)
    operators = columns.operators[:MAX_OPERATORS]
    return {
        "end_s": end_s,
        "times": [round(at, 3) for at in decimate_times(part, points).tolist()],
        "run": {name: cut(name) for name in RUN_MEASURES if (name, "") in known},
        "operators": {
            name: {m: cut(m, name) for m in CURVE_MEASURES if (m, name) in known}
            for name in operators
        },
        "operators_left_out": len(columns.operators) - len(operators),
        "objective_s": objective_s,
        "changes": _marks(columns, times, first, end),
        "is_thinned": len(part) > points,
    }


def _marks(columns: RunColumns, times: Any, first: int, end: int) -> Mapping[str, Any]:
    """Return the times of changes, and which of them were applied."""
    inside = [(number, applied) for number, applied in columns.changes if first <= number < end]
    step = -(-len(inside) // MAX_MARKS) or 1
    shown = inside[::step]
    return {
        "at": [round(float(times[number]), 3) for number, _ in shown],
        "applied": [applied for _, applied in shown],
        "count": len(inside),
    }
