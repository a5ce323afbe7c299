"""The capacity with which arrivals wait no longer than allowed, by an arrival and a service curve.

The greatest horizontal distance between the two curves is the longest wait (network calculus: Cruz
1991, Le Boudec and Thiran 2001). What arrives within a window may leave within the window and the
allowed wait, so a short burst takes less than its rate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: What the next decision may do at most: multiply the replicas by this.
RECOURSE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCurve:
    """When replicas work, in seconds from now."""

    #: Until then the present replicas work, then, after a pause, the new ones.
    start_s: float
    pause_s: float
    #: Until then no other decision has an effect; the next one has its own pause.
    end_s: float
    next_pause_s: float
    #: By then records must no longer be late, if they are now or because of the pause.
    settled_s: float
    #: How long a record may wait.
    wait_s: float
    #: Length of a step of arrivals.
    step_s: float

    def edges_s(self, steps: int) -> Values:
        """Return the times between steps; the last one ends with the curve."""
        edges: Values = self.step_s * np.arange(steps + 1, dtype=np.float64)
        edges[-1] = max(self.end_s, edges[-2] + 1e-9)
        return edges

    def work_s(self, begin_s: Values | float, end_s: Values | float, *, helps: bool) -> Values:
        """Return for how many seconds replicas work on what arrives from begin to end, in time."""
        latest = end_s + self.wait_s
        if helps:
            more = RECOURSE * np.maximum(0.0, latest - self.end_s - self.next_pause_s)
            latest = np.minimum(latest, self.end_s) + more
        return np.asarray(latest - begin_s)


def needed_rates(
    rows: Values, curve: ServiceCurve, backlog: float = 0.0, present: float = 0.0
) -> Values:
    """Return the capacity that each row of rates takes; `present` works until the change.

    >>> curve = ServiceCurve(
    ...     start_s=0, pause_s=0, end_s=30, next_pause_s=0, settled_s=15, wait_s=5, step_s=15
    ... )
    >>> needed_rates(np.array([[100.0, 100.0], [100.0, 20.0]]), curve).round(1).tolist()
    [83.3, 75.0]
    """
    edges = curve.edges_s(rows.shape[1])
    arrived = np.zeros((len(rows), len(edges)))
    np.cumsum(rows * np.diff(edges), axis=1, out=arrived[:, 1:])
    needed = _needed_rates(arrived, edges, curve, backlog, present, helps=False)
    helped_s = curve.end_s + curve.next_pause_s - curve.wait_s
    if helped_s < curve.end_s:  # the next decision comes in time for some records
        if helped_s > 0:  # those that arrive just before are the hardest to serve in time
            place = int(np.searchsorted(edges, helped_s))
            arrived = np.insert(arrived, place, _arrived_by(helped_s, arrived, edges), axis=1)
            edges = np.insert(edges, place, helped_s)
        helped = _needed_rates(arrived, edges, curve, backlog, present, helps=True)
        np.minimum(needed, helped, out=needed)
    return needed


def _needed_rates(
    arrived: Values,
    edges: Values,
    curve: ServiceCurve,
    backlog: float,
    present: float,
    *,
    helps: bool,
) -> Values:
    needed = _settle_rates(arrived, edges, curve, backlog, present, helps=helps)
    for steps in range(1, len(edges)):
        bursts = arrived[:, steps:] - arrived[:, :-steps]
        rates = bursts / curve.work_s(edges[:-steps], edges[steps:], helps=helps)
        np.maximum(needed, rates.max(axis=1), out=needed)
    return needed


def _settle_rates(
    arrived: Values,
    edges: Values,
    curve: ServiceCurve,
    backlog: float,
    present: float,
    *,
    helps: bool,
) -> Values:
    """Return the capacity with which nothing is late, or no longer, after the change."""
    begin_s = curve.start_s + curve.pause_s
    left = backlog - present * curve.start_s
    settled = left + _arrived_by(curve.settled_s, arrived, edges)
    after = np.maximum(left + _arrived_by(begin_s, arrived, edges), 0.0)
    settled = np.maximum(settled, after)
    needed: Values = settled / curve.work_s(begin_s, curve.settled_s, helps=helps)
    if 0 < curve.pause_s < curve.wait_s:  # what arrives during the pause need not be late
        later = edges >= begin_s
        waiting = arrived[:, later] - _arrived_by(curve.start_s, arrived, edges)[:, None]
        rates = waiting / curve.work_s(begin_s, edges[later], helps=helps)
        needed = np.maximum(needed, rates.max(axis=1, initial=0.0))
    return needed


def _arrived_by(at_s: float, arrived: Values, edges: Values) -> Values:
    """Return what has arrived until a time between the edges."""
    place = max(0, min(int(np.searchsorted(edges, at_s, side="right")) - 1, len(edges) - 2))
    part = (at_s - edges[place]) / max(edges[place + 1] - edges[place], 1e-9)
    rows: Values = arrived[:, place] + part * (arrived[:, place + 1] - arrived[:, place])
    return rows
