"""The score of a policy on its latency objective as tables."""

from dataclasses import asdict
from typing import Any

from penstock.core.numbers import table_number
from penstock.lab.comparison.objective_score import (
    MAX_VIOLATED,
    MIN_SAVING,
    CellScore,
    GridObjectiveScore,
    PolicyScore,
)
from penstock.reports.tables import Table, as_markdown, as_text

_ALLOWED = (
    f"kept: at most {MAX_VIOLATED:.0%} of the records missed the objective, or no more than with "
    "the replicas of the load's peak"
)
_HINDSIGHT = "times hindsight: a policy that misses the objective may need less than 1"


def as_terminal(score: GridObjectiveScore) -> str:
    """Return the tables as plain text."""
    return "\n\n".join(as_text(table) for table in _tables(score))


def as_document(score: GridObjectiveScore, command: str) -> str:
    """Return the tables as Markdown."""
    parts = [
        f"# The policy {score.roles.policy} and its objective",
        "",
        f"Made by `{command}`.",
        "",
    ]
    for table in _tables(score):
        parts += [as_markdown(table), ""]
    return "\n".join(parts)


def as_json(score: GridObjectiveScore) -> dict[str, Any]:
    """Return the score as plain dictionaries."""
    figures = {name: value for name, value, _ in _figures(score)}
    return {**asdict(score), "figures": figures}


def _tables(score: GridObjectiveScore) -> list[Table]:
    figures = tuple((name, value, aim) for name, value, aim in _figures(score))
    missing = (f"{score.missing} runs are missing",) if score.missing else ()
    return [
        Table(title="Figures", columns=("figure", "value", "aim"), rows=figures, notes=missing),
        Table(
            title="Policies",
            columns=(
                *("policy", "cells kept", "missed, mean", "times hindsight,\nno pause"),
                *("times hindsight,\npause", "rescales, mean"),
            ),
            rows=tuple(map(_policy_row, score.policies)),
            notes=(_ALLOWED, _HINDSIGHT),
        ),
        Table(
            title=f"Cells of {score.roles.policy}",
            columns=(
                *(
                    "load",
                    "missed",
                    "allowed",
                    "times\nhindsight",
                    "rescales",
                    f"of {score.roles.tuned or '-'}",
                ),
                *("beaten by", "best head room", "saves"),
            ),
            rows=tuple(map(_cell_row, score.cells)),
            notes=(
                "beaten by: rivals with published defaults that are cheaper and miss no more",
                "best head room: the cheapest constant one that misses no more, or is kept",
            ),
        ),
    ]


def _figures(score: GridObjectiveScore) -> list[tuple[str, str, str]]:
    cells, number = score.cells, len(score.cells)
    return [
        ("cells where the objective is kept", _of(sum(c.is_kept for c in cells), number), "all"),
        ("cost / hindsight, engines without a pause", _number(score.ratio(False)), "<= 1.15"),
        ("cost / hindsight, engines with a pause", _number(score.ratio(True)), "<= 1.30"),
        (
            "cells in which a rival with published defaults is cheaper and misses no more",
            _of(sum(bool(c.beaten_by) for c in cells), number),
            "0",
        ),
        (
            f"cells in which the best constant head room is more than {MIN_SAVING:.0%} cheaper",
            _of(sum(c.is_tuned_cheaper for c in cells), number),
            "<= 10 %",
        ),
        (f"rescales / those of {score.roles.tuned or '-'}", _number(score.rescale_ratio), "<= 0.7"),
    ]


def _policy_row(policy: PolicyScore) -> tuple[str, ...]:
    return (
        policy.label,
        _of(policy.kept, policy.cells),
        _percent(policy.violated),
        _number(policy.ratio),
        _number(policy.ratio_with_pause),
        f"{policy.rescales:.0f}",
    )


def _cell_row(cell: CellScore) -> tuple[str, ...]:
    saving = cell.tuned_saving
    return (
        cell.name,
        _percent(cell.violated),
        _percent(cell.allowed),
        _number(cell.ratio),
        table_number(cell.rescales),
        table_number(cell.base_rescales),
        ", ".join(cell.beaten_by) or "-",
        cell.tuned or "-",
        "-" if saving is None else f"{saving:.0%}",
    )


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
