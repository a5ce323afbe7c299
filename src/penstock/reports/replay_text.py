"""Compares the answers of another policy to a recorded run with the recorded ones."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from penstock.core.numbers import pretty
from penstock.reports.result_text import percent
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import clock
from penstock.runs.replay import ReplayAnswer, wanted


def answer_json(answer: ReplayAnswer) -> dict[str, Any]:
    """Return one answer as JSON."""
    return {
        "at": answer.at,
        "same": answer.same,
        "recorded": wanted(answer.recorded),
        "other": wanted(answer.other),
    }


def answers_text(answers: Sequence[ReplayAnswer], rows: int | None) -> list[str]:
    """Return the table of answers; consecutive equal answers share a row."""
    names = list(answers[0].recorded.targets)
    groups = [list(group) for _, group in groupby(answers, key=_cells)]
    shown = [["from", "to", "ticks", "running", *names, "all", ""]]
    for group in groups[:rows]:
        first, running = group[0], sum(t.current for t in group[0].recorded.targets.values())
        times = [clock(first.at), clock(group[-1].at), str(len(group)), str(running)]
        shown.append([*times, *_cells(first)[1:], "" if first.same else "differs"])
    lines = align_rows(shown, words=0)
    if len(groups) > len(shown) - 1:
        lines.append(f"... and {len(groups) - len(shown) + 1} more rows; --all prints them")
    return lines


def _cells(answer: ReplayAnswer) -> list[str]:
    running = [target.current for target in answer.recorded.targets.values()]
    # an operator that a policy does not name keeps its replicas
    kept = {name: target.current for name, target in answer.recorded.targets.items()}
    before, now = wanted(answer.recorded), {**kept, **wanted(answer.other)}
    pairs = [(before[name], now[name]) for name in before]
    pairs.append((sum(before.values()), sum(now.values())))
    return [str(running), *(f"{old} | {new}" for old, new in pairs)]


def summary_text(figures: dict[str, Any]) -> list[str]:
    """Return how often both policies agree, and their mean replicas."""
    rows = [["", "same answer", "recorded, mean", "replayed, mean"]]
    for name, part in [*figures["operators"].items(), ("all", figures)]:
        both = part["wanted"]
        means = (pretty(both["recorded"]), pretty(both["other"]))
        rows.append([name, percent(part["same_share"]), *means])
    changes = figures["changes"]
    text = f"changes wanted at {figures['ticks']} ticks: {changes['recorded']} as recorded, "
    return [*align_rows(rows), "", f"{text}{changes['other']} as replayed"]
