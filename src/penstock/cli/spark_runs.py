"""What `penstock run` does: one run or several, shown while they last, and stopped by Ctrl-C."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from penstock.engines.spark.run_layout import read_json
from penstock.errors import InputError
from penstock.reports.live_view import Live
from penstock.reports.run_statement import start_statement
from penstock.reports.screen import STOPPING, Screen, restore
from penstock.runs.journal import read_journal
from penstock.runs.observer import StopRequest
from penstock.runs.run_directory import JOURNAL, RESULT, default_place
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spark_spec import SparkSpec

#: The picture of a run, in its directory.
PICTURE = "run.svg"
_CODES = {"finished": 0, "cut": 0, "failed": 1}


def default_directory(prepared: PreparedSparkRun, policy: str) -> Path:
    """Return where a run is kept if nobody says: named after what runs, and after its workload."""
    load = (prepared.workload,) if prepared.workload else ()
    now = time.strftime("%Y%m%d-%H%M%S")
    return default_place((prepared.spec.pipeline, *load, policy), now, Path("runs"))


def run_one(
    prepared: PreparedSparkRun,
    directory: Path,
    *,
    plain: bool = False,
    which: str = "",
    allow_removal: Sequence[str] = (),
) -> tuple[dict[str, Any], int]:
    """Run what is prepared, or show that it has run; return its figures and the exit code."""
    spec = prepared.spec
    # not before everything is checked: it takes a second to load
    from penstock.runs.spark_run import run_on_spark  # noqa: PLC0415

    hint = "remove it: the run resumes and computes its figures again"
    kept: dict[str, Any] | None = read_json(directory / RESULT, hint)
    if kept is not None and kept.get("ended") == "finished" and kept["spec"] == spec.to_json():
        print(f"{directory} is already finished", file=sys.stderr)
        return kept, int(bool(kept["records"]["lost"]))
    print("\n".join(start_statement(prepared, directory)), file=sys.stderr, flush=True)
    stop = StopRequest()
    live = Live(which + title(prepared), prepared.objective_s)
    with Screen(live, stop, plain=plain) as screen, stopping(stop, screen) as caught:
        result = run_on_spark(prepared, directory, screen, stop, allow_removal)
    _draw(directory, title(prepared))
    for name, text in result["failed"].items():
        what = text if text.startswith(name) else f"{name} failed: {text}"
        print(f"error: {what}", file=sys.stderr)
    lost = result["records"]["lost"]
    if lost:
        print(f"error: {lost:,} records were lost: no batch read them", file=sys.stderr)
    code = 128 + caught[-1] if caught else _CODES[result["ended"]]
    return result, code or int(lost > 0)


def _draw(directory: Path, name: str) -> None:
    """Leave a picture of the run beside its figures."""
    # not before it is over: it takes a second to load
    from penstock.reports.run_picture import draw_run  # noqa: PLC0415

    # of a long run the last hours: all of it would take minutes
    journal = read_journal(directory / JOURNAL, newest=2)
    if any(tick.snapshot is not None for tick in journal.ticks):
        draw_run(journal, directory / PICTURE, name)


def prepare_policies(spec: SparkSpec, policies: Sequence[str]) -> dict[str, PreparedSparkRun]:
    """Prepare a run for each policy: a mistake in the last is found before the first begins."""
    runs = {name: prepare_spark_run(replace(spec, policy=name)) for name in policies}
    if any(not math.isfinite(prepared.duration_s) for prepared in runs.values()):
        problem = f"{spec.pipeline} produces no rows, so the first run would never end"
        raise InputError("--compare", problem, "bound each run with --minutes N")
    return runs


def compare(
    runs: Mapping[str, PreparedSparkRun], directory: Path, *, plain: bool = False
) -> tuple[dict[str, dict[str, Any]], int]:
    """Run the same arrivals under one policy after the other."""
    results, code = {}, 0
    for number, (name, one) in enumerate(runs.items(), start=1):
        which = f"{number} of {len(runs)}: "
        results[name], ended = run_one(one, directory / name, plain=plain, which=which)
        code = max(code, ended)
        if code > 128:
            break
    return results, code


def title(prepared: PreparedSparkRun) -> str:
    """Say in a few words what runs."""
    spec = prepared.spec
    load = f" under {prepared.workload}" if prepared.workload else ""
    faster = f" x {spec.speed_up:g}" if spec.speed_up != 1 else ""
    dry = ", dry run" if spec.dry_run else ""
    return f"{prepared.pipeline.name}{load}{faster}, {prepared.policy.name}{dry}"


@contextmanager
def stopping(stop: StopRequest, screen: Screen) -> Iterator[list[int]]:
    """Let Ctrl-C, or a polite kill, stop the run at the end of a batch; a second one at once.

    Yields the signals that came. Before records are on their way there is nothing to bring to
    an end, and the first one stops at once.
    """
    from penstock.engines.spark.cluster.session import kill_session  # noqa: PLC0415  (loads Spark)

    caught: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if caught:
            kill_session()
            restore()
            os._exit(128 + number)
        caught.append(number)
        if not stop.is_gentle:
            raise KeyboardInterrupt
        stop.is_asked = True
        if not screen.is_redrawn:
            # not through the stream, in the middle of whose writing we may be
            os.write(2, f"{STOPPING}\n".encode())

    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
