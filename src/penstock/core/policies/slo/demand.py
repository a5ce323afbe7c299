"""The demand of every operator: forecasts at the sources, backlogs, both passed on along edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.numbers import ceil
from penstock.core.policies.slo.arrivals import measure_arrivals
from penstock.core.policies.slo.capacity import measure_edges
from penstock.core.policies.slo.change_cost import ChangeCost
from penstock.core.policies.slo.forecast import Values, forecast
from penstock.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """Records/s that will arrive at one operator, and the records that wait already."""

    #: Expected over the next steps.
    mean: float
    #: Rates of the next steps: one row for each scenario, and rows that a decrease must carry.
    scenarios: Values
    lasting: Values
    #: Records that wait longer than usual, here and upstream.
    backlog: float = 0.0

    def passed_on(self, passed: float) -> "Demand":
        """Return what reaches the next operator, for the records sent per record processed."""
        return Demand(
            mean=self.mean * passed,
            scenarios=self.scenarios * passed,
            lasting=self.lasting * passed,
            backlog=self.backlog * passed,
        )


def predict_demands(
    history: Sequence[Snapshot],
    cost: ChangeCost,
    floors: Mapping[str, float],
    lasting_s: float,
) -> dict[str, Demand]:
    """Return the demand of every operator whose sources are known."""
    snapshot, edges = history[-1], measure_edges(history)
    steps = max(1, ceil(cost.horizon_s / cost.interval_s))
    lasting_steps = max(steps, ceil(lasting_s / cost.interval_s))
    demands: dict[str, Demand] = {}
    for name in snapshot.topology.order:
        op = snapshot.operators[name]
        if any(feeder not in demands for feeder in op.upstream):
            continue
        parts = [demands[feeder].passed_on(edges[feeder, name]) for feeder in op.upstream]
        if name in snapshot.offered:
            rates = measure_arrivals(name, history, cost.interval_s)
            parts.append(look_ahead(rates, steps, lasting_steps))
        elif op.is_source:
            continue
        total = _add(parts)
        waiting = max(0.0, (op.queue or 0.0) - floors[name] * total.mean)
        demands[name] = replace(total, backlog=total.backlog + waiting)
    return demands


def look_ahead(rates: Sequence[float], steps: int, lasting_steps: int) -> Demand:
    """Return the demand at a source; what lasts is the recent past and what follows it."""
    near, values = forecast(rates, steps), np.asarray(rates, dtype=np.float64)
    rows = [list_windows(values[-lasting_steps:], steps)]
    if near.period is not None:  # what comes next came one period ago
        ahead = values[len(values) - near.period :]
        rows.append(list_windows(ahead[: lasting_steps + steps], steps))
    return Demand(
        mean=float(np.mean(near.expected)), scenarios=near.scenarios, lasting=np.vstack(rows)
    )


def list_windows(values: Values, steps: int) -> Values:
    """Return all runs of so many values; one, with the last value repeated, if there are fewer."""
    missing = max(0, steps - len(values))
    padded = np.concatenate((values, np.repeat(values[-1:], missing)))
    return np.lib.stride_tricks.sliding_window_view(padded, steps)


def _add(parts: Sequence[Demand]) -> Demand:
    """Add demands, scenario by scenario: each is what happened at one time of the past."""
    if len(parts) == 1:
        return parts[0]
    return Demand(
        mean=sum(part.mean for part in parts),
        scenarios=_add_rows([part.scenarios for part in parts]),
        lasting=_add_rows([part.lasting for part in parts]),
        backlog=sum(part.backlog for part in parts),
    )


def _add_rows(parts: Sequence[Values]) -> Values:
    fewest = min(len(part) for part in parts)
    return np.asarray(sum(part[len(part) - fewest :] for part in parts))
