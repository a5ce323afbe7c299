"""A run over time as text charts: offered load, replicas, changes, latency."""

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.reports.text_charts import Series, chart, chart_width, minutes, resample, short

_ROWS = 4
_LABEL = 10
_UP, _DOWN, _BOTH = "▲", "▼", "◆"


class Timeline:
    """Takes the ticks of a run and draws them."""

    def __init__(self) -> None:
        self._offered: list[float | None] = []
        self._replicas: list[float | None] = []
        self._latency: list[float | None] = []
        self._executors: list[float | None] = []
        #: At each tick, the replicas that its decision added and removed.
        self._changes: list[tuple[int, int]] = []
        self._before_s, self._before_records = 0.0, 0

    def add(self, tick: Tick) -> None:
        """Take one tick."""
        status = tick.status
        records = status.offered_records - self._before_records
        self._offered.append(records / (tick.at - self._before_s))
        self._before_s, self._before_records = tick.at, status.offered_records
        self._replicas.append(sum(status.running.values()))
        merged = merge_histograms(status.latency.values())
        self._latency.append(merged.mean if merged.count else None)
        self._changes.append(_change(tick))
        self._executors.append(status.executors)

    def draw(self) -> list[str]:
        """Return the charts, one below the other over the same time."""
        width = chart_width(_LABEL + 2)
        return [
            *chart_panel("offered", "records/s", resample(self._offered, width)),
            "",
            *chart_panel("replicas", "", resample(self._replicas, width, max)),
            "",
            *self._second_level(width),
            f"{'changes':>{_LABEL}} │{self._marks(width)}".rstrip(),
            "",
            *chart_panel("latency", "s", resample(self._latency, width)),
            f"{'':{_LABEL}} └{self._axis(width)}",
        ]

    def _second_level(self, width: int) -> list[str]:
        """Return the chart of executors; empty without executors."""
        if not any(self._executors):
            return []
        return [*chart_panel("executors", "", resample(self._executors, width, max)), ""]

    def _marks(self, width: int) -> str:
        marks = [" "] * width
        for i, (more, fewer) in enumerate(self._changes):
            if more or fewer:
                place = i * width // len(self._changes)
                mark = _BOTH if more and fewer else _UP if more else _DOWN
                marks[place] = mark if marks[place] in (" ", mark) else _BOTH
        return "".join(marks)

    def _axis(self, width: int) -> str:
        return f" {minutes(self._before_s)}".rjust(width, "─")


def _change(tick: Tick) -> tuple[int, int]:
    if not tick.applied or tick.decision is None:
        return 0, 0
    answers = [*tick.decision.targets.values(), tick.decision.placement]
    steps = [answer.wanted - answer.current for answer in answers if answer is not None]
    return sum(s for s in steps if s > 0), -sum(s for s in steps if s < 0)


def chart_panel(name: str, unit: str, values: Series) -> list[str]:
    """Return one chart with its name, its highest value and its unit on the left."""
    top = short(max((value for value in values if value is not None), default=None))
    labels = [name, top, unit, *[""] * _ROWS][:_ROWS]
    lines = zip(labels, chart(values, _ROWS), strict=True)
    return [f"{label:>{_LABEL}} │{line}".rstrip() for label, line in lines]
