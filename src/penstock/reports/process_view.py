"""The live view of a process run: the instances of every operator as they come and go."""

from collections import deque
from typing import TextIO

from penstock.decentralized.processes.run_monitor import OperatorSample, RunSample
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.reports.progress import duration
from penstock.reports.sample_view import SampleView, progress_bar
from penstock.reports.text_charts import short, sparkline

_ACTIVE, _STARTING, _STOPPING = "●", "○", "◌"
#: Rates that are remembered.
_RATES = 40


class ProcessView(SampleView[RunSample]):
    """Shows the operators of a process run and their instances."""

    def __init__(self, spec: ProcessRunSpec, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._spec = spec
        self._rates: deque[float] = deque(maxlen=_RATES)

    def line(self, sample: RunSample) -> str:
        """Return a sample as one line, for a log."""
        return plain_line(sample)

    def lines(self, sample: RunSample) -> list[str]:
        """Draw a sample, with the rates of all samples so far."""
        self._rates.append(sample.offered)
        time = progress_bar(sample.at_s, self._spec.seconds)
        counts = f"{sample.processes} processes  {sample.actions} scaling actions"
        return [
            f"decentralized  {time}  {counts}",
            "",
            f"  {' ─▶ '.join(self._spec.names)}",
            f"  load {sparkline(self._rates)} {short(sample.offered)}/s",
            "",
            f"  {'operator':<10}{'in/s':>6}{'queue':>7}  {'':>3} instances",
            *(_row(operator) for operator in sample.operators),
            "",
            f"  {sample.sent:,} records sent, {sample.delivered:,} delivered; "
            f"{sample.messages} messages of the protocol in the last second",
        ]


def plain_line(sample: RunSample) -> str:
    """Return one sample as one line, for a log."""
    operators = "  ".join(
        f"{op.name} {op.instances}{f'-{op.stopping}' if op.stopping else ''} (queue {op.queue})"
        for op in sample.operators
    )
    return (
        f"{duration(sample.at_s):>6}  offered {sample.offered:g}/s  {operators}  "
        f"actions {sample.actions}  messages {sample.messages}"
    )


def instance_dots(operator: OperatorSample) -> str:
    """Draw the instances: at work, waiting for their start, about to stop.

    >>> sample = OperatorSample(
    ...     name="map", active=3, starting=2, stopping=1, load=9, queue=0, ideal=4
    ... )
    >>> instance_dots(sample)
    '●●●○○◌'
    """
    return _ACTIVE * operator.active + _STARTING * operator.starting + _STOPPING * operator.stopping


def _row(op: OperatorSample) -> str:
    drawn = instance_dots(op)
    return f"  {op.name:<10}{op.load:>6.0f}{op.queue:>7}  {op.instances:>3} {drawn}"
