"""A comparison of runs with their twins: tables, a document, JSON, and panels of a picture."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.core.numbers import pretty, table_number
from penstock.engines.simulator.profile import Profile
from penstock.reports.pictures import Panel, PictureLine
from penstock.reports.tables import Table, as_markdown
from penstock.twin.errors import BOUNDS, TwinCell, TwinErrors

#: Short names of the bounds, for narrow columns.
_SHORT = ("replicas", "latency", "rescales")


def as_table(cell: TwinCell) -> Table:
    """Return one run: each figure with its bound, then the replicas of each operator."""
    rows = [_row(figure) for figure in cell.figures]
    rows += [_operator_row(name, real, twins) for name, (real, twins) in cell.operators.items()]
    verdict = "within all bounds" if cell.is_inside else "not within all bounds"
    fitted = ("the profile was fitted to this run: not a prediction",) if cell.is_fitted else ()
    return Table(
        title=f"{cell.title} ({cell.name})",
        columns=("figure", "Spark", "twin", "range", "error", "bound", "inside"),
        rows=tuple(rows),
        notes=("", f"{verdict}; twin: mean over {len(cell.figures[0].twins)} seeds", *fitted),
    )


def _row(figure: TwinErrors) -> tuple[str, ...]:
    return (
        figure.bound.name,
        table_number(figure.real),
        table_number(figure.mean),
        _range(figure.twins),
        _error(figure),
        f"{figure.bound.most:.0%}" if figure.bound.is_share else pretty(figure.bound.most),
        "yes" if figure.is_inside else "no",
    )


def _operator_row(name: str, real: float, twins: Sequence[float]) -> tuple[str, ...]:
    mean = sum(twins) / len(twins)
    error = f"{mean / real - 1:+.0%}" if real else "-"
    numbers = table_number(real), table_number(mean), _range(twins)
    return f"  replicas of {name}", *numbers, error, "", ""


def _range(values: Sequence[float]) -> str:
    return f"{table_number(min(values))} to {table_number(max(values))}" if values else "-"


def _error(figure: TwinErrors) -> str:
    if figure.error is None:
        return "-"
    return f"{figure.error:+.0%}" if figure.bound.is_share else f"{figure.error:+.1f}"


def as_document(cells: Sequence[TwinCell], profile: Profile, command: str) -> str:
    """Return a document with all runs; those that the profile was fitted to are not counted."""
    predicted = [cell for cell in cells if not cell.is_fitted]
    inside = sum(cell.is_inside for cell in predicted)
    columns = ["query", "workload", "policy"]
    for short in _SHORT:
        columns += [f"{short}, Spark", "twin", "error"]
    table = Table(
        columns=(*columns, "inside"), words=3, rows=tuple(_document_row(cell) for cell in cells)
    )
    parts = [
        "# The twin",
        "",
        "What the simulator predicts of runs on Spark. Each run was simulated with its own load, "
        "policy, parameters and guards; the numbers of the engine and of the operators come from "
        f"the profile `{profile.name}`{_fitted_to(profile)}. Made by `{command}`.",
        "",
        f"{inside} of {len(predicted)} runs are inside all bounds: mean replicas within "
        f"{BOUNDS[0].most:.0%}, mean latency within {BOUNDS[1].most:.0%}, rescales within "
        f"{BOUNDS[2].most:g}.",
        "",
        as_markdown(table),
        "",
        *_by_figure(predicted),
        "",
        "What was emulated: " + "; ".join(_emulated(cells)) + ".",
    ]
    return "\n".join(parts) + "\n"


def _fitted_to(profile: Profile) -> str:
    if not profile.runs:
        return ""
    return f", which was fitted to {', '.join(profile.runs)}"


def _document_row(cell: TwinCell) -> tuple[str, ...]:
    row = [cell.query, cell.workload, cell.policy]
    for figure in cell.figures:
        bad = "" if figure.is_inside else " !"
        row += [table_number(figure.real), table_number(figure.mean), _error(figure) + bad]
    return (*row, "fitted" if cell.is_fitted else "yes" if cell.is_inside else "no")


def _by_figure(cells: Sequence[TwinCell]) -> list[str]:
    lines = []
    for i, bound in enumerate(BOUNDS):
        inside = sum(cell.figures[i].is_inside for cell in cells)
        signed = (cell.figures[i].error for cell in cells)
        errors = sorted(abs(error) for error in signed if error is not None)
        middle = errors[len(errors) // 2] if errors else 0.0
        text = f"{middle:.0%}" if bound.is_share else f"{middle:.1f}"
        lines.append(f"- {bound.name}: {inside} of {len(cells)} inside, {text} off in the median")
    return lines


def _emulated(cells: Sequence[TwinCell]) -> list[str]:
    """Return what was emulated, and in which runs."""
    cells_by_text: dict[str, list[TwinCell]] = {}
    for cell in cells:
        waits = cell.build_args.get("service_s")
        parts = [f"times of the workload divided by {pretty(cell.speed_up)}"]
        parts.append(f"rates times {cell.rate_scale:g}")
        if waits and float(waits):
            parts.append(f"a row waits {float(waits):g} s at the query's own operator")
        cells_by_text.setdefault(", ".join(parts), []).append(cell)
    return [
        f"{', '.join(dict.fromkeys(c.query for c in members))} under "
        f"{', '.join(dict.fromkeys(c.workload for c in members))}: {text}"
        for text, members in cells_by_text.items()
    ]


def as_json(cells: Sequence[TwinCell], profile: str) -> dict[str, Any]:
    """Return all figures as JSON."""
    return {
        "profile": profile,
        "inside": sum(cell.is_inside for cell in cells if not cell.is_fitted),
        "runs": [
            {
                "run": cell.name,
                "query": cell.query,
                "workload": cell.workload,
                "policy": cell.policy,
                "inside": cell.is_inside,
                "fitted": cell.is_fitted,
                "figures": [
                    {
                        "figure": figure.bound.name,
                        "real": figure.real,
                        "twin": figure.mean,
                        "twins": list(figure.twins),
                        "error": figure.error,
                        "bound": figure.bound.most,
                        "inside": figure.is_inside,
                    }
                    for figure in cell.figures
                ],
            }
            for cell in cells
        ],
    }


def panels(real: Sequence[Tick], twin: Sequence[Tick]) -> tuple[Panel, ...]:
    """Return replicas, queue and latency of a run and its twin over time."""
    both = {"Spark": real, "twin": twin}
    return (
        _panel("replicas of all operators", "replicas", both, _replicas, steps=True),
        _panel("rows that wait for all operators", "rows", both, _queue),
        _panel("mean latency of finished rows", "s", both, _latency),
    )


def _panel(
    title: str,
    unit: str,
    runs: Mapping[str, Sequence[Tick]],
    of: Callable[[Tick], float | None],
    *,
    steps: bool = False,
) -> Panel:
    lines = []
    for label, ticks in runs.items():
        points = [(tick.at / 60, value) for tick in ticks if (value := of(tick)) is not None]
        minutes, values = zip(*points, strict=True) if points else ((), ())
        lines.append(PictureLine(label=label, minutes=minutes, values=values))
    return Panel(title=title, unit=unit, lines=tuple(lines), steps=steps)


def _replicas(tick: Tick) -> float:
    return float(sum(tick.status.running.values()))


def _queue(tick: Tick) -> float | None:
    if tick.snapshot is None:
        return None
    return sum(op.queue or 0.0 for op in tick.snapshot.operators.values())


def _latency(tick: Tick) -> float | None:
    merged = Histogram()
    for histogram in tick.status.latency.values():
        merged.merge(histogram)
    return merged.mean if merged.count else None
