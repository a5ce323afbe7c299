"""Simulations of decentralized scaling as text and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.numbers import pretty, table_number
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.summary import (
    accuracy_series,
    summarize,
    throughput_series,
)
from penstock.decentralized.simulator.timeline import OperatorSeries, ScalingTimeline
from penstock.lab.comparison.statistics import Interval, compute_mean_interval
from penstock.reports.tables import Table, as_text
from penstock.reports.text_charts import chart, chart_width, resample, short
from penstock.runs.scores import percentile

_ROWS = 4
_LABEL = 12


def simulation_json(timeline: ScalingTimeline) -> dict[str, Any]:
    """Return the figures of a simulation and its series, one value per step."""
    total = timeline.total
    return {
        "setup": timeline.setup.to_json(),
        **summarize(timeline),
        "load": total.load,
        "instances": total.instances,
        "messages": total.messages,
        "operators": [_operator_json(timeline, series) for series in timeline.operators],
    }


def _operator_json(timeline: ScalingTimeline, series: OperatorSeries) -> dict[str, Any]:
    return {
        "load": series.load,
        "instances": series.instances,
        "messages": series.messages,
        "waiting": series.waiting,
        "accuracy": accuracy_series(timeline, series),
        "ideal_throughput": throughput_series(timeline, series),
    }


def simulation_text(timeline: ScalingTimeline) -> str:
    """Return a simulation as a table, charts over all steps, and totals."""
    total = timeline.total
    charts = [
        _chart("load", total.load),
        _chart("instances", total.instances),
        _chart("messages", total.messages),
    ]
    axis = f"{'step':>{_LABEL - 2}}  0{timeline.setup.steps - 1:>{chart_width(_LABEL) - 1}}"
    blocks = [describe_setup(timeline.setup), as_text(_operator_table(timeline)), *charts]
    return "\n\n".join([*blocks, axis, "\n".join(_totals(timeline))])


def describe_setup(setup: DecentralizedSetup) -> str:
    """Return the setup in one sentence."""
    pipeline = (
        f"{setup.operators} operators x {setup.instances} instances of {setup.capacity} "
        f"records/step, {setup.load} load, {setup.steps} steps, {setup.mode} messages"
    )
    faults = {
        f"{setup.message_loss:.2%} of messages lost": setup.message_loss,
        f"messages up to {setup.message_delay} steps late": setup.message_delay,
        f"records up to {setup.record_delay} steps late": setup.record_delay,
        f"{setup.crashes} crashes": setup.crashes,
    }
    shown = [text for text, value in faults.items() if value]
    return ", ".join([pipeline, *shown, f"seed {setup.seed}"])


def _operator_table(timeline: ScalingTimeline) -> Table:
    rows = [
        (str(number), *_operator_row(timeline, series))
        for number, series in enumerate(timeline.operators, 1)
    ]
    columns = (
        *("operator", "load\nmean", "instances\nmin", "\nmean", "\nmax"),
        *("accuracy\nmean", "\np05", "\np95", "ideal\nthroughput", "messages\nper step"),
    )
    return Table(columns=columns, rows=tuple(rows))


def _operator_row(timeline: ScalingTimeline, series: OperatorSeries) -> Sequence[str]:
    accuracy = accuracy_series(timeline, series)
    return (
        pretty(round(_mean(series.load))),
        str(min(series.instances)),
        table_number(_mean(series.instances)),
        str(max(series.instances)),
        f"{_mean(accuracy):.2f}",
        f"{percentile(accuracy, 5):.2f}",
        f"{percentile(accuracy, 95):.2f}",
        f"{_mean(throughput_series(timeline, series)):.1%}",
        table_number(_mean(series.messages)),
    )


def _chart(name: str, values: Sequence[int]) -> str:
    width = chart_width(_LABEL)
    lines = chart(resample([float(v) for v in values], min(width, len(values)), max), _ROWS)
    labels = [short(max(values)), *[""] * (_ROWS - 2), name]
    rows = zip(labels, lines, strict=True)
    return "\n".join(f"{label:>{_LABEL - 2}}  {line}".rstrip() for label, line in rows)


def _totals(timeline: ScalingTimeline) -> list[str]:
    figures = summarize(timeline)
    accuracy, records, actions = (figures[name] for name in ("accuracy", "records", "actions"))
    traffic = figures["traffic"]
    phases = traffic["formula_phases"]
    agreed = phases - traffic["formula_mismatches"]
    idle = records["waiting_at_idle"]
    return [
        f"accuracy   mean {accuracy['mean']:.2f}, p05 {accuracy['p05']:.2f}, "
        f"p95 {accuracy['p95']:.2f}; ideal throughput {figures['ideal_throughput']:.1%}",
        f"records    {pretty(records['sent'])} sent, {pretty(records['processed'])} processed, "
        f"{pretty(records['lost'])} lost, {pretty(records['waiting'])} wait"
        + (f" ({pretty(idle)} at instances without start signal)" if idle else ""),
        f"actions    {actions['duplications']} duplications with {actions['copies']} copies, "
        f"{actions['deletions']} deletions; {actions['unfinished']} not finished",
        f"messages   {pretty(traffic['messages'])}; {agreed} of {phases} duplication phases have "
        "2 min(k, n) (|succs| + |preds|) + k",
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


#: Figures that are compared over seeds.
FIGURES = (
    *("accuracy.mean", "accuracy.p05", "accuracy.p95", "ideal_throughput", "nodes.max"),
    *("nodes.follow", "nodes.lag_steps", "traffic.messages", "traffic.exponent"),
    *("traffic.formula_mismatches", "actions.duplications", "actions.deletions"),
    *("actions.unfinished", "records.sent", "records.processed", "records.lost"),
    *("records.waiting", "records.waiting_at_idle"),
)


def collect_intervals(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Interval]:
    """Return the mean and the 95 % interval of each figure over the seeds that have it."""
    columns = {name: [_look_up(summary, name) for summary in summaries] for name in FIGURES}
    known = {name: [v for v in values if v is not None] for name, values in columns.items()}
    return {name: compute_mean_interval(values) for name, values in known.items() if values}


def seeds_text(setup: DecentralizedSetup, summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures over several seeds as a table."""
    rows = [
        (name, pretty(interval.mean), *(map(pretty, interval[1:]) if interval.is_known else "--"))
        for name, interval in collect_intervals(summaries).items()
    ]
    head = f"{describe_setup(setup)} and the next ones, {len(summaries)} in all"
    table = Table(columns=("figure", "mean", "95 % low", "high"), rows=tuple(rows))
    return f"{head}\n\n{as_text(table)}"


def seeds_json(setup: DecentralizedSetup, summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures over several seeds; the bounds of a single one are unknown."""
    figures = {
        name: {
            "mean": interval.mean,
            "low": interval.low if interval.is_known else None,
            "high": interval.high if interval.is_known else None,
        }
        for name, interval in collect_intervals(summaries).items()
    }
    return {"setup": setup.to_json(), "seeds": len(summaries), "figures": figures}


def _look_up(summary: Mapping[str, Any], name: str) -> float | None:
    value: Any = summary
    for key in name.split("."):
        value = value[key]
    return None if value is None else float(value)
