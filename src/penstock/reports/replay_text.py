"""A replay with another policy as text and JSON: its decisions, or its simulated result."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from penstock import __version__
from penstock.core.numbers import pretty
from penstock.reports.result_text import comparison, percent
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import clock
from penstock.runs.policy_replay import ClosedLoop, PolicyReplay
from penstock.runs.replay import OperatorSummary, ReplayAnswer, ReplaySummary, summary, wanted
from penstock.runs.run_directory import RunDirectory


def recording_notes(run: RunDirectory) -> Iterator[str]:
    """Yield what makes a recorded run differ from one of today."""
    if run.versions["penstock"] != __version__:
        yield f"this run was recorded by penstock {run.versions['penstock']}"
    if run.journal.begins_s:
        yield f"the journal of the first {run.journal.begins_s / 60:.0f} min was removed"


def open_loop_json(replay: PolicyReplay, answers: Sequence[ReplayAnswer]) -> dict[str, Any]:
    """Return all answers and their summary as JSON."""
    return {
        "loop": "open",
        "question": "what would have been answered on the recorded snapshots",
        "recorded": replay.recorded,
        "other": replay.other,
        **summary(answers),
        "answers": [_answer_json(answer) for answer in answers],
    }


def open_loop_text(
    replay: PolicyReplay, answers: Sequence[ReplayAnswer], rows: int | None
) -> list[str]:
    """Return the answers as a table of at most `rows` rows, and their summary."""
    before, other = replay.recorded_policy, replay.other_policy
    return [
        f"open loop: decisions of {other} on the snapshots of {replay.directory}",
        f"The run was scaled by {before}; decisions of {other} have no effect.",
        "",
        f"replicas wanted: {before}, recorded | {other}, replayed",
        *_answers_text(answers, rows),
        "",
        *_summary_text(summary(answers)),
    ]


def closed_loop_json(results: ClosedLoop) -> dict[str, Any]:
    """Return both results as JSON."""
    return {
        "loop": "closed",
        "question": "what would have happened: the same load, simulated",
        "recorded": results.recorded.to_json(),
        "other": results.other.to_json(),
    }


def closed_loop_text(replay: PolicyReplay, results: ClosedLoop) -> list[str]:
    """Return both results side by side."""
    before, other = replay.recorded_policy, replay.other_policy
    head = f"closed loop: the load of {replay.directory}, simulated with {other}"
    columns = {f"{before}, recorded": results.recorded, f"{other}, simulated": results.other}
    return [head, "", *comparison(columns)]


def _answer_json(answer: ReplayAnswer) -> dict[str, Any]:
    """Return one answer as JSON."""
    return {
        "at": answer.at,
        "same": answer.same,
        "recorded": wanted(answer.recorded),
        "other": wanted(answer.other),
    }


def _answers_text(answers: Sequence[ReplayAnswer], rows: int | None) -> list[str]:
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


def _summary_text(figures: ReplaySummary) -> list[str]:
    """Return how often both policies agree, and their mean replicas."""
    rows = [["", "same answer", "recorded, mean", "replayed, mean"]]
    parts: list[tuple[str, OperatorSummary]] = [*figures["operators"].items(), ("all", figures)]
    for name, part in parts:
        both, share = part["wanted"], part["same_share"]
        means = (pretty(both["recorded"]), pretty(both["other"]))
        rows.append([name, "-" if share is None else percent(share), *means])
    changes = figures["changes"]
    text = f"changes wanted at {figures['ticks']} ticks: {changes['recorded']} as recorded, "
    return [*align_rows(rows), "", f"{text}{changes['other']} as replayed"]
