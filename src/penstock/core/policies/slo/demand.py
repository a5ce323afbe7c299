"""The demand of every operator: forecasts at the sources, backlogs, both passed on along edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.numbers import ceil
from penstock.core.policies.slo.arrivals import measure_arrivals
from penstock.core.policies.slo.capacity import measure_edges
from penstock.core.policies.slo.change_cost import ChangeCost
from penstock.core.policies.slo.forecast import forecast
from penstock.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Records/s that will arrive at one operator, and the records that wait already."""

    mean: float
    upper: float
    #: The most over the time that a decrease must last.
    lasting: float
    #: Records that wait longer than usual, here and upstream.
    backlog: float = 0.0

    def passed_on(self, passed: float) -> "Demand":
        """Return what reaches the next operator, for the records sent per record processed."""
        return Demand(
            mean=self.mean * passed,
            upper=self.upper * passed,
            lasting=self.lasting * passed,
            backlog=self.backlog * passed,
        )


def predict_demands(
    history: Sequence[Snapshot],
    cost: ChangeCost,
    floors: Mapping[str, float],
    lasting_s: float,
    share: float,
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
            parts.append(look_ahead(rates, steps, lasting_steps, share))
        elif op.is_source:
            continue
        total = _add(parts)
        waiting = max(0.0, (op.queue or 0.0) - floors[name] * total.mean)
        demands[name] = replace(total, backlog=total.backlog + waiting)
    return demands


def look_ahead(rates: Sequence[float], steps: int, lasting_steps: int, share: float) -> Demand:
    """Return the demand at a source; what lasts is the most of the past and of the forecast."""
    near, values = forecast(rates, steps, share), np.asarray(rates, dtype=np.float64)
    highest = float(np.max(values[-lasting_steps:]))
    if near.period is not None:  # what comes next came one period ago
        ahead = values[len(values) - near.period :][:lasting_steps]
        highest = max(highest, float(np.max(ahead)))
    return Demand(mean=near.mean, upper=near.upper, lasting=max(highest, near.mean))


def _add(parts: Sequence[Demand]) -> Demand:
    return Demand(
        mean=sum(part.mean for part in parts),
        upper=sum(part.upper for part in parts),
        lasting=sum(part.lasting for part in parts),
        backlog=sum(part.backlog for part in parts),
    )
