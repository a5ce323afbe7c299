"""The result of a process run as text: load and instances over time, and a table."""

from collections.abc import Iterator, Sequence

from penstock.core.numbers import pretty, table_number
from penstock.decentralized.processes.node_action import DELETION, DUPLICATION
from penstock.decentralized.processes.run_result import ProcessRunResult, percentiles
from penstock.decentralized.processes.simulator_figures import (
    SEEDS,
    ScalingFigures,
    figures_of_run,
)
from penstock.reports.tables import Table, align_rows, as_text
from penstock.reports.text_charts import chart_width, resample
from penstock.reports.timeline import chart_panel

_LABEL = 10


def report(result: ProcessRunResult, simulated: ScalingFigures | None = None) -> list[str]:
    """Return the charts, the operators, the figures, and those of the simulator beside them."""
    return [
        *_charts(result),
        "",
        as_text(_operators(result)),
        "",
        as_text(_comparison(figures_of_run(result), simulated)),
        "",
        *align_rows(list(_facts(result)), words=2),
        "",
        *_verdict(result),
    ]


def _charts(result: ProcessRunResult) -> list[str]:
    width = chart_width(_LABEL + 2)
    samples = result.samples
    offered = [sample.offered for sample in samples]
    instances = [float(sum(op.instances for op in sample.operators)) for sample in samples]
    axis = f" {result.seconds:.0f} s".rjust(width, "─")
    return [
        *chart_panel("offered", "records/s", resample(offered, width)),
        "",
        *chart_panel("instances", "", resample(instances, width, max)),
        f"{'':{_LABEL}} └{axis}",
    ]


def _operators(result: ProcessRunResult) -> Table:
    rows = []
    for account in result.accounts:
        counts = [op.instances for op in result.loaded_samples if op.name == account.operator]
        fewest, mean, most = _spread(counts)
        losses = (f"{len(account.lost):,}", f"{len(account.repeated):,}")
        rows.append((account.operator, f"{account.processed:,}", *losses, fewest, mean, most))
    columns = ("operator", "processed", "lost", "repeated")
    return Table(columns=(*columns, "fewest\ninstances", "mean", "most"), rows=tuple(rows))


def _spread(counts: Sequence[int]) -> tuple[str, str, str]:
    if not counts:  # the sink does not scale
        return "1", "1", "1"
    return str(min(counts)), table_number(sum(counts) / len(counts)), str(max(counts))


def _comparison(run: ScalingFigures, simulated: ScalingFigures | None) -> Table:
    sides = [run] if simulated is None else [run, simulated]
    heads = ("this run", f"simulator,\nmean of {SEEDS} seeds")[: len(sides)]
    rows = (
        ("scaling actions", *(pretty(each.actions) for each in sides)),
        ("nodes started", *(pretty(each.nodes_started) for each in sides)),
        ("messages of the protocol", *(pretty(each.messages) for each in sides)),
        ("messages per action", *(_ratio(each.messages, each.actions) for each in sides)),
        ("accuracy: instances / ideal", *(_number(each.accuracy_mean) for each in sides)),
        ("  5 % are below", *(_number(each.accuracy_p05) for each in sides)),
        ("  5 % are above", *(_number(each.accuracy_p95) for each in sides)),
        ("load that the instances can take", *(f"{each.ideal_throughput:.1%}" for each in sides)),
    )
    return Table(columns=("while the load lasts", *heads), rows=rows)


def _facts(result: ProcessRunResult) -> Iterator[tuple[str, str]]:
    latency = percentiles(result.latencies_s)
    took = percentiles([action.took_s for action in result.actions])
    duplications, deletions = map(result.count_actions, (DUPLICATION, DELETION))
    messages, formula = sum(result.messages.values()), result.expected_messages
    peak, started = result.peak_processes, result.started_processes
    yield "records sent", f"{result.sent:,} in {result.seconds:.1f} s"
    yield "actions in all", f"{duplications} duplications, {deletions} deletions"
    yield "an action takes", f"{_number(took['p50'])} s, 95 % at most {_number(took['p95'])} s"
    yield "messages in all", f"{messages:,}; {formula:,} by the paper's formula"
    yield "latency", f"{_number(latency['p50'])} s, 95 % at most {_number(latency['p95'])} s"
    yield (
        "processes",
        f"{peak} at most at once, {started} started",
    )
    if result.strangers:
        yield "strangers", f"{result.strangers} connections without the token were refused"


def _ratio(part: float, whole: float) -> str:
    return table_number(part / whole if whole else None)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _verdict(result: ProcessRunResult) -> list[str]:
    if not result.problems:
        return ["Every operator has processed every record exactly once."]
    return [f"PROBLEM: {problem}" for problem in result.problems]
