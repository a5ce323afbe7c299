"""Totals of an operator since its run began; each batch record carries them. Pure.

Old records are removed, so sums over records would be incomplete. A row is lost if no batch took
it: if a batch begins after the end of the one before, or if a batch counted fewer rows than there
are between its offsets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.engines.microbatch.batch_record import BatchRecord

#: The first counted batch; 0 unless an earlier version started the run.
SINCE = "since"
#: Prefix of a topic: the rows that the operator has written to it.
WRITTEN = "written:"
_COUNTED = ("rows_in", "rows_out", "filtered", "expanded", "late", "put_aside", "dropped")
_WRONG = ("skipped", "repeated")
#: Rows that a sliced operator has taken beyond its offsets: a batch that ends inside a record
#: batch takes a part of each slice, which is rounded. At the end of a topic it is 0.
AHEAD = "ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsRules:
    """How the rows of an operator are counted."""

    #: Whether tasks count removed and added rows by call; else they follow from rows in and out.
    counts_calls: bool = True
    #: Whether a batch takes a part of each slice, which may exceed the rows of its offsets.
    takes_whole_slices: bool = False


def add_totals(record: BatchRecord, before: BatchRecord | None, rules: TotalsRules) -> BatchRecord:
    """Return a record with the totals up to its batch; `before` is the previous record."""
    known: Mapping[str, int] = before.totals if before is not None else {}
    since = known.get(SINCE, record.batch)
    old = {name: known.get(name, 0) for name in (*_COUNTED, *_WRONG, AHEAD)}
    new = {**_count_rows(record, rules), **_count_gaps(record, before, rules)}
    written = {
        f"{WRITTEN}{topic}": sum(segment.rows for segment in segments)
        for topic, segments in record.outputs.items()
    }
    carried = {name: rows for name, rows in known.items() if name.startswith(WRITTEN)}
    totals = {name: rows + new[name] for name, rows in old.items()}
    totals |= carried | {name: rows + carried.get(name, 0) for name, rows in written.items()}
    return replace(record, totals={**totals, SINCE: since})


def _count_rows(record: BatchRecord, rules: TotalsRules) -> dict[str, int]:
    tasks = record.tasks
    filtered, expanded = sum(t.filtered for t in tasks), sum(t.expanded for t in tasks)
    if not rules.counts_calls:
        surplus = [task.rows_out - task.rows_in for task in tasks]
        filtered, expanded = sum(max(0, -n) for n in surplus), sum(max(0, n) for n in surplus)
    return {
        "rows_in": record.rows_in,
        "rows_out": record.rows_out,
        "filtered": filtered,
        "expanded": expanded,
        "late": sum(task.late for task in tasks),
        "put_aside": sum(task.put_aside for task in tasks),
        "dropped": sum(record.dropped.values()),
    }


def _count_gaps(
    record: BatchRecord, before: BatchRecord | None, rules: TotalsRules
) -> dict[str, int]:
    """Count rows that were skipped, and rows that were taken twice."""
    ends = before.end if before is not None else {}
    steps = [record.start[topic] - end for topic, end in ends.items() if topic in record.start]
    planned = sum(end - record.start.get(topic, end) for topic, end in record.end.items())
    counted = record.rows_in + sum(record.dropped.values())
    # an ingest reads no topic, and a record without tasks only repartitions state
    surplus = counted - planned if record.end and record.tasks else 0
    ahead, surplus = (surplus, 0) if rules.takes_whole_slices else (0, surplus)
    return {
        AHEAD: ahead,
        "skipped": sum(max(0, step) for step in steps) + max(0, -surplus),
        "repeated": sum(max(0, -step) for step in steps) + max(0, surplus),
    }
