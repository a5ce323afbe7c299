"""Decisions of a run as JSON: a filtered list, and one decision with everything about it."""

from collections.abc import Iterable
from typing import Any

from penstock.control.loop import Tick
from penstock.dashboard.run_reader import RunReader
from penstock.reports.decision_story import read_measures, tell_effect, tell_tick
from penstock.reports.event_text import explain_change, explain_no_decision
from penstock.runs.run_columns import is_change

#: Entries of one answer, and ticks that are read for it at most.
MAX_ENTRIES, MAX_READ = 100, 3000
#: Ticks that are looked through for changes while the journal is still being read.
MAX_SCANNED = 1000
#: Kinds of the list: changes that were applied or not, failed ones, or every tick.
KINDS = ("changes", "failed", "all")


def list_decisions(
    reader: RunReader,
    *,
    kind: str = "changes",
    operator: str = "",
    text: str = "",
    before: int | None = None,
    limit: int = 50,
) -> dict[str, Any]:
    """Return decisions, the newest first, before the tick of a number; `next` continues there."""
    entries: list[dict[str, Any]] = []
    limit = max(1, min(limit, MAX_ENTRIES))
    numbers, rest = _find_ticks(reader, kind, before)
    for read, number in enumerate(numbers):
        if len(entries) >= limit or read >= MAX_READ:
            rest = number
            break
        tick = reader.index.tick(number)
        entry = _entry(number, tick, kind, operator) if tick is not None else None
        if entry is not None and text.lower() in _words(entry):
            entries.append(entry)
    return {"entries": entries, "next": rest, "total": len(reader.columns.changes)}


def _find_ticks(
    reader: RunReader, kind: str, before: int | None
) -> tuple[Iterable[int], int | None]:
    """Return the numbers of ticks, the newest first, and where the search goes on later."""
    end = len(reader.index) if before is None else min(before + 1, len(reader.index))
    if kind == "all":
        return range(end - 1, -1, -1), None
    changes, rest = reader.columns.changes, None
    if not reader.is_complete:
        # a long journal is read from its beginning, and a page shows its end meanwhile
        first = max(len(reader.columns), end - MAX_SCANNED)
        recent = _scan(reader, first, end)
        is_gap = first > len(reader.columns)
        changes, rest = (recent, first - 1) if is_gap else ([*changes, *recent], None)
    numbers = (
        number
        for number, is_applied in reversed(changes)
        if number < end and (kind != "failed" or not is_applied)
    )
    return numbers, rest


def _scan(reader: RunReader, first: int, end: int) -> list[tuple[int, bool]]:
    """Return changes in ticks that are not in the columns yet, and whether they were applied."""
    ticks = enumerate(reader.index.read(first, end), first)
    return [(number, data.get("applied") is True) for number, data in ticks if is_change(data)]


def _entry(number: int, tick: Tick, kind: str, operator: str) -> dict[str, Any] | None:
    items = []
    decision = tick.decision
    for name, target in decision.targets.items() if decision is not None else ():
        differs = target.wanted != target.current
        if (differs or kind == "all") and operator in ("", name):
            items.append(
                {
                    "operator": name,
                    "current": target.current,
                    "wanted": target.wanted,
                    "reason": str(target.proposal_reason),
                    "summary": explain_change(target),
                }
            )
    why_not = explain_no_decision(tick) if decision is None else ""
    moves = len(decision.placement.moves) if decision is not None and decision.placement else 0
    if not items and not why_not and not moves:
        return None
    return {
        "number": number,
        "at": tick.at,
        "applied": tick.applied,
        "error": tick.error,
        "why_not": why_not,
        "items": items,
        "moves": moves,
    }


def _words(entry: dict[str, Any]) -> str:
    parts = [f"{item['operator']} {item['summary']}" for item in entry["items"]]
    return " ".join([*parts, entry["error"], entry["why_not"]]).lower()


def tell_decision(reader: RunReader, number: int) -> dict[str, Any] | None:
    """Return one tick with all details and the effect of its changes; None if it is damaged."""
    tick = reader.index.tick(number) if 0 <= number < len(reader.index) else None
    if tick is None:
        return None
    story = tell_tick(tick, read_measures(reader.index.header))
    for target in story["targets"]:
        differs = target["wanted"] != target["current"]
        if differs and tick.applied:
            target["effect"] = tell_effect(
                reader.index, number, target["operator"], target["wanted"]
            )
    return story | {"number": number}
