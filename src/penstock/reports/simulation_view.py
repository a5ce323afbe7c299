"""A simulated run on a terminal: its title, and its progress while it lasts."""

import sys
from collections.abc import Callable

from penstock.control.loop import Tick
from penstock.core.numbers import pretty
from penstock.reports.terminal import can_redraw
from penstock.reports.text_charts import minutes
from penstock.runs.simulated_run import PreparedSimulation

#: With more records, an engine that simulates each record takes minutes.
_MANY_RECORDS = 10_000_000


def title(prepared: PreparedSimulation) -> str:
    """Return one line that describes the run."""
    spec = prepared.spec
    length = minutes(prepared.schedule.duration_s)
    mode = "" if spec.mode == "operator" else f", {spec.mode}"
    head = f"{spec.query} under {spec.workload}, {spec.policy} on {spec.engine}{mode}"
    return f"{head}, {length}, seed {spec.seed}"


def progress_observers(prepared: PreparedSimulation) -> list[Callable[[Tick], None]]:
    """Announce a long run on stderr; on a terminal, return an observer that shows its progress."""
    records = prepared.load.total_records
    if prepared.profile.resolution != "records" or records < _MANY_RECORDS:
        return []
    engine = prepared.spec.engine
    print(
        f"{engine} follows each of {pretty(records)} records, which takes minutes", file=sys.stderr
    )
    if not can_redraw(sys.stderr):
        return []
    end_s = prepared.schedule.duration_s

    def show(tick: Tick) -> None:
        end = "\n" if tick.at >= end_s else ""
        print(f"\r{100 * tick.at / end_s:3.0f} %", end=end, file=sys.stderr, flush=True)

    return [show]
