"""Figures of the hosts of a run over time, for claims about E-StreamHub's plots."""

from typing import Any

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.runs.scores import percentile

#: Seconds over which the published plots show means.
PERIOD_S = 30.0
#: Ticks with fewer records have no mean delay.
MIN_RECORDS = 10


class HostTimeline:
    """Collects processor load, moves of slices and delays; empty for runs without hosts."""

    def __init__(self) -> None:
        self._means: list[float] = []
        self._highest: list[float] = []
        self._hosts: list[int] = []
        self._moves, self._first_moves = 0, 0
        self._delays: list[tuple[float, float]] = []
        self._first_change_s: float | None = None

    def add(self, tick: Tick) -> None:
        """Add one tick."""
        if tick.snapshot is None or not tick.snapshot.hosts:
            return
        loads = [host.load for host in tick.snapshot.hosts.values()]
        self._means.append(sum(loads) / len(loads))
        self._highest.append(max(loads))
        self._hosts.append(len(loads))
        self._add_moves(tick)
        delays = merge_histograms(tick.status.latency.values())
        if delays.count >= MIN_RECORDS:
            self._delays.append((tick.at, delays.mean))

    def _add_moves(self, tick: Tick) -> None:
        if not tick.applied or tick.decision is None or tick.decision.placement is None:
            return
        moves = len(tick.decision.placement.moves)
        if self._first_change_s is None:
            self._first_change_s, self._first_moves = tick.at, moves
        self._moves += moves

    def result(self) -> dict[str, Any]:
        """Return the figures; None where nothing was measured."""
        if not self._hosts:
            return {}
        # below one host's worth of load, nothing can raise the mean
        several = [mean for mean, hosts in zip(self._means, self._hosts, strict=True) if hosts > 1]
        return {
            "cpu": {
                "mean": sum(several) / len(several) if several else None,
                "p05": percentile(several, 5) if several else None,
                "p95": percentile(several, 95) if several else None,
                "highest_p95": percentile(self._highest, 95),
            },
            "hosts": {
                "first": self._hosts[0],
                "last": self._hosts[-1],
                "max": max(self._hosts),
                "moves": self._moves,
                "first_moves": self._first_moves,
            },
            "delay_s": self._delay(),
        }

    def _delay(self) -> dict[str, float | None]:
        """Return the worst mean delay of a period, and the share of ticks with a mean below 1 s."""
        if not self._delays:
            return {"worst": None, "below_1s": None, "after_first_change": None}
        means = [delay for _, delay in self._delays]
        begin_s = self._first_change_s
        near = [
            delay for at, delay in self._delays if begin_s and begin_s <= at <= begin_s + PERIOD_S
        ]
        return {
            "worst": max(means),
            "below_1s": sum(delay < 1 for delay in means) / len(means),
            "after_first_change": max(near, default=None),
        }
