"""Workloads as text and JSON: the offered load over time, and the list of all."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from penstock.core.numbers import pretty
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import chart_width, sparkline
from penstock.reports.text_layout import hang, param_line
from penstock.workloads.expression import NamedPart, Tree, write
from penstock.workloads.pattern import Pattern
from penstock.workloads.registry import find_pattern, read_params
from penstock.workloads.spikes import Spikes
from penstock.workloads.workload import Workload

#: Columns before the description of a parameter.
_WIDTH = 25


def workload_text(load: Workload, title: str) -> str:
    """Return the load as a chart with figures."""
    minutes = pretty(load.duration_s / 60)
    width = chart_width()
    line = sparkline(load.mean_rates(load.duration_s / width).tolist())
    axis = f"0{minutes + ' min':>{width - 1}}"
    return "\n".join([title, "", line, axis, "", *_figures(load, minutes)])


def _figures(load: Workload, minutes: str) -> list[str]:
    rates = load.mean_rates()
    low, high = int(rates.argmin()), int(rates.argmax())
    rows = [
        ("min", pretty(float(rates[low])), f"records/s, minute {low}"),
        ("mean", pretty(load.mean_rate), "records/s"),
        ("max", pretty(float(rates[high])), f"records/s, minute {high}"),
        ("total", pretty(load.total_records), "records"),
        ("length", minutes, "minutes"),
    ]
    lines = align_rows([row[:2] for row in rows])
    return [f"{line} {unit}" for line, (_, _, unit) in zip(lines, rows, strict=True)]


def workload_json(
    load: Workload, tree: Tree, seed: int, given: Mapping[str, str]
) -> dict[str, Any]:
    """Return the load as JSON, with one rate per minute."""
    rates = [_number(rate) for rate in load.mean_rates()]
    return {
        "name": write(tree),
        "seed": seed,
        "minutes": _number(load.duration_s / 60),
        "params": _used(tree, given),
        "total_records": load.total_records,
        "min": min(rates),
        "mean": _number(load.mean_rate),
        "max": max(rates),
        "rates": rates,
    }


def _number(value: float) -> int | float:
    """Write whole numbers without a fraction, and others without float noise."""
    return int(value) if value == int(value) else round(float(value), 6)


def _used(tree: Tree, given: Mapping[str, str]) -> dict[str, Any]:
    """Return all parameters of a single workload; the name of an expression contains them."""
    if not isinstance(tree, NamedPart):
        return {}
    chosen = {key: value for key, value in ({**dict(tree.given), **given}).items() if key != "seed"}
    params, spikes = read_params(find_pattern(tree.name), chosen)
    return asdict(params) | (asdict(spikes) if spikes.wanted else {})


def list_text(patterns: Sequence[Pattern]) -> str:
    """Return workloads with their parameters."""
    spikes = "\n".join(
        [
            "spikes, which every workload can have:",
            *(param_line(item, _WIDTH) for item in Spikes.describe()),
        ]
    )
    return "\n\n".join([*map(_describe, patterns), spikes])


def _describe(pattern: Pattern) -> str:
    head = [hang(pattern.name, pattern.summary, 19), hang("", pattern.source, 19)]
    own = [param_line(item, _WIDTH) for item in pattern.params.describe()]
    spikes = [
        param_line(replace(item, default=getattr(pattern.spikes, item.name)), _WIDTH)
        for item in Spikes.describe()
        if pattern.spikes.wanted
    ]
    return "\n".join(head + own + spikes)


def list_json(patterns: Sequence[Pattern]) -> list[dict[str, Any]]:
    """Return the same as JSON."""
    return [
        {
            "name": pattern.name,
            "summary": pattern.summary,
            "source": pattern.source,
            "minutes": pattern.minutes,
            "seeded": pattern.seeded,
            "arrivals": pattern.arrivals,
            "params": {item.name: item.default for item in pattern.params.describe()},
        }
        for pattern in patterns
    ]
