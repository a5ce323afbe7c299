"""Results of the elasticity experiments as a table, as JSON, as a picture, and in a page."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.reports.canvas import Target
from penstock.reports.page_block import write_page_block
from penstock.reports.pictures import Panel, PictureLine, draw_over_time
from penstock.reports.tables import Table, as_markdown, as_text

if TYPE_CHECKING:
    from penstock.pubsub.bench.elasticity import ElasticitySpec
    from penstock.pubsub.bench.elasticity_result import ElasticityPeriod, ElasticityResult

#: Figures 8 and 9 of E-StreamHub: hosts at most and at the end, and what is said of the delay.
PAPER = {8: (15, 1, "small"), 9: (8, 3, "below 1 s")}
_NAN = float("nan")


def elasticity_json(spec: "ElasticitySpec", result: "ElasticityResult") -> dict[str, Any]:
    """Return everything that was measured."""
    most, last, delay = PAPER[spec.figure]
    return {
        "figure": spec.figure,
        "seconds": spec.seconds,
        "peak_per_s": spec.peak_per_s,
        "subscriptions": spec.load.subscriptions,
        "hosts": spec.hosts.describe(),
        "hold_s": spec.hold_s,
        "paper": {"hosts_most": most, "hosts_last": last, "delay": delay},
        **asdict(result),
    }


def elasticity_text(spec: "ElasticitySpec", result: "ElasticityResult") -> str:
    """Return the table for a terminal."""
    return as_text(_make_table(spec, result))


def write_elasticity_page(
    path: Path, spec: "ElasticitySpec", result: "ElasticityResult", picture: Path | None
) -> None:
    """Replace the table of the figure in a Markdown page, and the link to its picture."""
    body = as_markdown(_make_table(spec, result))
    if picture is not None:
        link = Path(os.path.relpath(picture.resolve(), path.resolve().parent)).as_posix()
        body = f"![publications, hosts, CPU and delay over time]({link})\n\n{body}"
    write_page_block(path, f"penstock pubsub elasticity --figure {spec.figure}", body)


def draw_elasticity(spec: "ElasticitySpec", result: "ElasticityResult", target: Target) -> None:
    """Draw the four plots of the figure below each other."""
    periods = result.periods
    minutes = [(period.begin_s + period.seconds / 2) / 60 for period in periods]

    def line(label: str, field: str, factor: float = 1.0) -> PictureLine:
        values = [getattr(period, field) for period in periods]
        known = [_NAN if value is None else factor * value for value in values]
        return PictureLine(label=label, minutes=minutes, values=known)

    panels = (
        Panel(
            title="publications",
            unit="per second",
            lines=(line("offered", "offered_per_s"), line("notified", "notified_per_s")),
        ),
        Panel(title="hosts", unit="hosts", lines=(line("hosts", "hosts"),), steps=True),
        Panel(
            title="CPU of a host, of its emulated core",
            unit="%",
            lines=(
                line("least", "cpu_min", 100),
                line("mean", "cpu_mean", 100),
                line("highest", "cpu_max", 100),
            ),
            level=50,
            level_name="target",
        ),
        Panel(
            title="delay from publish to notice",
            unit="seconds",
            lines=(line("mean delay", "delay_mean_s"), line("standard deviation", "delay_std_s")),
        ),
    )
    title = f"E-StreamHub, figure {spec.figure}, on Spark in {spec.seconds / 60:.3g} minutes"
    draw_over_time(panels, target, title)


def _make_table(spec: "ElasticitySpec", result: "ElasticityResult") -> Table:
    columns = (
        "second",
        "offered/s",
        "notified/s",
        "hosts",
        "CPU of a host,\nleast",
        "mean",
        "highest",
        "delay, s,\nmean",
        "standard\ndeviation",
    )
    most, last, delay = PAPER[spec.figure]
    load = spec.load
    notes = (
        f"{result.published:,} publications, {load.subscriptions:,}"
        f" {'encrypted' if load.is_encrypted else 'plain'} subscriptions,"
        f" {100 * load.match_rate:g} % match; {result.moves} migrations of slices;"
        f" load average {result.load_average:.0f}",
        f"hosts: {result.hosts_first} at first, {result.hosts_most} at most,"
        f" {_find_last_hosts(result)} when the load ended, {result.hosts_last} afterwards"
        f" (paper: at most {most}, {last} in the end); mean CPU while there are several"
        f" {_show(result.cpu_mean)} (target 0.50)",
        f"delay: {result.delay_p50_s:.1f} s in the median, {result.delay_p95_s:.1f} s at p95"
        f" (paper: {delay}); {result.wrong_publications} of {result.checked_publications}"
        " publications compared with brute force were wrong",
        f"emulated: a host is a name with {spec.hosts.share:g} of a core, at most"
        f" {spec.hosts.most} hosts on this machine; its CPU is a share of that. Shortened:"
        f" {spec.seconds:g} s instead of 40 minutes; rules act after {spec.hold_s:g} s, not 30",
    )
    return Table(columns=columns, rows=tuple(map(_make_row, result.periods)), notes=notes)


def _find_last_hosts(result: "ElasticityResult") -> int | None:
    """Return the hosts of the last period in which anything was published."""
    loaded = [period.hosts for period in result.periods if period.offered_per_s > 0]
    return loaded[-1] if loaded else None


def _make_row(period: "ElasticityPeriod") -> tuple[str, ...]:
    return (
        f"{period.begin_s:.0f}",
        f"{period.offered_per_s:.0f}",
        f"{period.notified_per_s:.0f}",
        "" if period.hosts is None else str(period.hosts),
        *map(_show, (period.cpu_min, period.cpu_mean, period.cpu_max)),
        *(_show(value, 1) for value in (period.delay_mean_s, period.delay_std_s)),
    )


def _show(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
