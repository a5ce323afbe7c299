"""The charts of a report: load, replicas, queues, latency, executors, hosts, instances."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from penstock.reports.svg_chart import Chart, ChartLine, draw_chart, has_values
from penstock.runs.run_columns import RunColumns


class LineOf(Protocol):
    """Makes a line of a column."""

    def __call__(
        self, label: str, measure: str, operator: str = "", is_step: bool = False
    ) -> ChartLine:
        """Return the line."""


def draw_charts(columns: RunColumns, objective_s: float | None) -> Iterator[Mapping[str, Any]]:
    """Yield charts with their titles and legends; a chart without values is left out."""
    for chart in _all_charts(columns, objective_s):
        if has_values(chart):
            yield {
                "title": chart.title,
                "svg": draw_chart(chart),
                "legend": [line.label for line in chart.lines],
                "is_stacked": chart.is_stacked,
            }


def _all_charts(columns: RunColumns, objective_s: float | None) -> Iterator[Chart]:
    times = columns.times
    end_s = float(times[-1]) if len(times) else 0.0
    marks = tuple(float(times[number]) for number, is_applied in columns.changes if is_applied)

    def line(label: str, measure: str, operator: str = "", is_step: bool = False) -> ChartLine:
        values = columns.column(measure, operator)
        return ChartLine(label=label, times=times, values=values, is_step=is_step)

    yield Chart(
        title="Load",
        unit="records/s",
        lines=(line("offered", "offered_rate"), line("processed", "processed_rate")),
        end_s=end_s,
    )
    yield Chart(
        title="Running replicas by operator; marks are changes",
        unit="replicas",
        lines=tuple(line(name, "running", name, is_step=True) for name in columns.operators),
        is_stacked=True,
        marks=marks,
        end_s=end_s,
    )
    yield Chart(
        title="Waiting records",
        unit="records",
        lines=(
            line("not yet processed", "backlog"),
            *(line(name, "queue", name) for name in columns.operators),
        ),
        end_s=end_s,
    )
    yield Chart(
        title="Latency from due to done",
        unit="s",
        lines=(line("p95", "latency_p95"), line("p50", "latency_p50")),
        level=objective_s,
        level_label=f"objective {objective_s:g} s" if objective_s is not None else "",
        end_s=end_s,
    )
    yield Chart(
        title="Executors",
        unit="executors",
        lines=(
            line("running", "executors", is_step=True),
            line("requested", "executors_requested", is_step=True),
        ),
        end_s=end_s,
    )
    yield from _host_charts(line, end_s)
    yield from _instance_charts(columns, line, end_s)


def _host_charts(line: LineOf, end_s: float) -> Iterator[Chart]:
    """Yield the charts of a publish/subscribe run; they are empty for others."""
    yield Chart(
        title="Hosts, and slices that move",
        unit="number",
        lines=(line("hosts", "hosts", is_step=True), line("slices that move", "moves")),
        end_s=end_s,
    )
    yield Chart(
        title="Load of hosts",
        unit="share",
        lines=(
            line("mean", "host_load_mean"),
            line("highest", "host_load_max"),
            line("lowest", "host_load_min"),
        ),
        end_s=end_s,
    )


def _instance_charts(columns: RunColumns, line: LineOf, end_s: float) -> Iterator[Chart]:
    """Yield the charts of a decentralized run; they are empty for others."""
    names = {name for name, _ in columns.names}
    if "ideal" in names:
        yield Chart(
            title="Instances of all operators, and as many as the load needs",
            unit="instances",
            lines=(
                line("running", "replicas", is_step=True),
                line("needed", "ideal", is_step=True),
            ),
            end_s=end_s,
        )
    yield Chart(
        title="What instances decided alone",
        unit="instances",
        lines=(line("copies start", "copies"), line("stop", "stops")),
        end_s=end_s,
    )
    yield Chart(
        title="Messages of the protocol by operator",
        unit="messages per tick",
        lines=tuple(
            line(operator, "messages", operator)
            for name, operator in columns.names
            if name == "messages" and operator
        ),
        is_stacked=True,
        end_s=end_s,
    )
