"""The status of a run, live or ended, read from its directory alone."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.engines.microbatch.host_table import HostTable
from penstock.engines.port import IngestStatus
from penstock.engines.spark.run_layout import RunLayout, read_json
from penstock.errors import InputError
from penstock.files.lock import Holder, find_holder
from penstock.pipelines.chains import CHAINS
from penstock.runs.journal_tail import JournalTail, read_tail
from penstock.runs.operator_status import (
    OperatorStatus,
    read_declared,
    read_from_journal,
    read_operator,
)
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, RESULT, SPEC_FILE, read_result

#: A loop that writes nothing for this many intervals, and at least this many seconds, is stuck.
_MAX_INTERVALS, _MIN_SILENCE_S = 4, 60.0
#: An operator without a commit for this long while rows wait is stuck, and so is one that fails
#: and is restarted for this long.
MAX_STALL_S = 120.0
#: A run that is still starting after this many seconds does not start.
MAX_START_S = 600.0
#: Exit codes of `penstock status`.
HEALTHY, UNHEALTHY, NOT_RUNNING = 0, 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStatus:
    """A chain of operators that run as one query."""

    names: tuple[str, ...]
    #: Why it ends where it does.
    end: str
    #: What the last tick says of each member; empty if there is none.
    members: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A run at one moment."""

    #: The run directory.
    directory: Path
    #: The name of the pipeline.
    pipeline: str
    #: starting, running, ending (its driver is gone), finished, stopped, cut, failed or killed.
    state: str
    #: The process that carries it out; None if there is none.
    pid: int | None
    #: Reasons why it is unhealthy.
    problems: tuple[str, ...]
    #: What should be known, but does not make it unhealthy.
    warnings: tuple[str, ...]
    #: Seconds that it has run.
    seconds: float | None
    #: Seconds since the last tick.
    tick_age_s: float | None
    #: How often it was resumed.
    resumes: int
    #: Rows that queues or timeouts dropped.
    dropped_rows: int
    #: Replicas, queue, watermark, restarts and last commit of each operator.
    operators: tuple[OperatorStatus, ...]
    #: Rows and backlog of each ingest, as of the last tick.
    ingests: Mapping[str, IngestStatus]
    #: Operators that run as one query.
    chains: tuple[ChainStatus, ...] = ()
    #: The slices on each host, if the pipeline has hosts.
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The part of a core that a host has, emulated; None without hosts.
    host_share: float | None = None
    #: Bytes on disk by folder of the run directory; files beside them are "other".
    disk_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether its process is alive."""
        return self.state in ("starting", "running", "ending")

    @property
    def exit_code(self) -> int:
        """0 healthy, 1 unhealthy or failed, 3 not running."""
        if self.problems:
            return UNHEALTHY
        return HEALTHY if self.is_live else NOT_RUNNING


def check_run_directory(run: Path) -> None:
    """Raise `InputError` if a directory holds no readable run."""
    try:
        if (run / SPEC_FILE).is_file() and os.access(run / SPEC_FILE, os.R_OK):
            return
    except OSError as error:
        raise InputError("RUN", f"cannot be read: {error.strerror}", where=str(run)) from None
    hint = "a run is a directory that penstock run has made"
    raise InputError("RUN", f"there is no {SPEC_FILE}", hint, str(run))


def read_status(run: Path, now: float | None = None) -> RunStatus:
    """Read the status of a run; `InputError` if the directory holds none."""
    check_run_directory(run)
    now = time.time() if now is None else now
    tail, holder, layout = read_tail(run), find_holder(run / LOCK), RunLayout(run)
    declared, result = read_declared(run), _read_result(run)
    operators = tuple(
        read_operator(layout, name, operator, tail, now)
        for name, operator in declared["operators"].items()
    )
    if not operators:  # of another application, or of metrics: only the journal knows them
        operators = read_from_journal(tail)
    state = _state(holder, tail, result)
    tick = tail.tick
    ingests = tick.ingests if tick else {}
    age_s = None if tail.written_at is None else now - tail.written_at
    return RunStatus(
        directory=run,
        pipeline=declared.get("name", run.name),
        state=state,
        pid=holder.pid if holder else None,
        problems=(
            *_problems(state, operators, tail, age_s, now),
            *_late_start(state, run, now),
            *_losses(holder, result),
        ),
        warnings=tuple(_warnings(operators, ingests)),
        seconds=tick.at if tick else None,
        tick_age_s=age_s if tick else None,
        resumes=tail.resumes,
        dropped_rows=tick.dropped_records if tick else 0,
        operators=operators,
        ingests=ingests,
        chains=_chains(declared, tail),
        hosts=_hosts(layout),
        host_share=(declared.get("hosts") or {}).get("share"),
        disk_bytes=disk_use(run),
    )


def _chains(declared: Mapping[str, Any], tail: JournalTail) -> tuple[ChainStatus, ...]:
    """Return the chains of a run, with what the last tick says of their members."""
    measured = tail.tick.members if tail.tick is not None else {}
    return tuple(
        ChainStatus(
            names=tuple(chain["members"]),
            end=chain["end"],
            members=tuple(measured.get(chain["members"][0], ())),
        )
        for chain in declared.get(CHAINS, ())
    )


def _hosts(layout: RunLayout) -> dict[str, tuple[str, ...]]:
    data = read_json(layout.hosts)
    if data is None:
        return {}
    table = HostTable.from_json(data)
    return {host: tuple(table.slices_of(host)) for host in table.hosts}


def _state(holder: Holder | None, tail: JournalTail, result: RunResult | None) -> str:
    if holder is not None:
        if not holder.is_alive:
            return "ending"
        return "running" if tail.tick else "starting"
    if result is None:
        return "killed"
    return result.spark.ended if result.spark is not None else "finished"


def _problems(
    state: str,
    operators: tuple[OperatorStatus, ...],
    tail: JournalTail,
    age_s: float | None,
    now: float,
) -> Iterator[str]:
    for operator in operators:
        if operator.error:
            yield f"{operator.name} failed: {operator.error.strip().splitlines()[-1]}"
        elif state == "running" and (operator.restarting_s or 0.0) > MAX_STALL_S:
            yield (
                f"{operator.name} has been restarting for {operator.restarting_s:.0f} s, try"
                f" {operator.tries}: {_first_line(operator.last_restart)}"
            )
        elif state == "running" and _is_stuck(operator, now):
            waited = f"{operator.oldest_waiting_s:.0f} s"
            yield f"{operator.name} has committed nothing while rows wait for {waited}"
    if state == "failed" and not any(operator.error for operator in operators):
        yield "the run has failed"
    silence_s = max(_MIN_SILENCE_S, _MAX_INTERVALS * tail.interval_s)
    if state == "running" and age_s is not None and age_s > silence_s:
        yield f"the journal has had no tick for {age_s:.0f} s"


def _late_start(state: str, run: Path, now: float) -> Iterator[str]:
    """Say that a first start takes too long."""
    since_s = now - (run / SPEC_FILE).stat().st_mtime
    if state == "starting" and since_s > MAX_START_S:
        yield f"the run has been starting for {since_s:.0f} s"


def _losses(holder: Holder | None, result: RunResult | None) -> Iterator[str]:
    """Say what the last result counts as lost; a run that goes on has no result."""
    spark = result.spark if result is not None and holder is None else None
    if spark is not None and spark.records.lost > 0:
        yield f"{spark.records.lost:,} records were lost: no batch read them"


def _is_stuck(operator: OperatorStatus, now: float) -> bool:
    silent_s = now - (operator.last_commit_at or 0.0)
    return min(operator.oldest_waiting_s or 0.0, silent_s) > MAX_STALL_S


def _warnings(
    operators: tuple[OperatorStatus, ...], ingests: Mapping[str, IngestStatus]
) -> Iterator[str]:
    for name, ingest in ingests.items():
        if ingest.is_behind:
            yield f"{name} falls behind: {ingest.backlog or 0:g} {ingest.unit} wait"
    for operator in operators:
        if operator.restarts:
            times = "once" if operator.restarts == 1 else f"{operator.restarts} times"
            cause = _first_line(operator.last_restart)
            yield f"{operator.name} was restarted {times}, the last time because: {cause}"


def _first_line(cause: str) -> str:
    return (cause.strip().splitlines() or ["a process of it died"])[0]


def disk_use(run: Path) -> dict[str, int]:
    """Return the bytes that a run takes on disk, by folder."""
    used = {"topics": 0, "checkpoints": 0, "state": 0, "other": 0}
    for folder, _, names in os.walk(run):
        part = Path(folder).relative_to(run).parts[:1]
        place = part[0] if part and part[0] in used else "other"
        used[place] += sum(_bytes(f"{folder}/{name}") for name in names)
    return used


def _bytes(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:  # removed meanwhile
        return 0


def _read_result(run: Path) -> RunResult | None:
    """Return the result; a run whose result is damaged did not finish, as far as is known."""
    try:
        return read_result(run / RESULT)
    except InputError:
        return None
