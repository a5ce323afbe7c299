"""Warnings about a run in words, counted from its ticks: missing measures, failures, drops."""

from collections.abc import Iterator

from penstock.core.numbers import pretty
from penstock.runs.run_columns import RunColumns

#: Events that are warnings, by their kind.
_EVENTS = {
    "failed": "failures of operators or changes",
    "restart": "restarts of the pipeline",
    "restarting": "restarts of operators",
    "retried": "changes that were requested again",
    "gave-up": "changes that were given up",
    "late-tick": "ticks that came late",
    "dropped": "times records were dropped",
    "late": "times records came after the watermark",
    "slow-batch": "slow batches",
}


def list_warnings(columns: RunColumns) -> Iterator[str]:
    """Yield what went wrong, with counts."""
    missing = sum(n for (_, why), n in columns.unchanged.items() if why == "metrics-missing")
    if missing:
        yield f"a measure was missing in {pretty(missing)} decisions about an operator"
    for kind, words in _EVENTS.items():
        if count := columns.event_counts[kind]:
            yield f"{pretty(count)} {words}"
    dropped = columns.column("dropped")
    if len(dropped) and dropped[-1] > 0:
        yield f"{pretty(float(dropped[-1]))} records were dropped"
