"""Writes a decentralized run as a run directory, so that everything that shows runs can show it.

A tick is one step of the simulator, or one sample of the processes. Its decision is the sum of
what the instances decided alone. Snapshots have, beyond the fields of every run, the messages of
the protocol (`messages`) and the states of instances (`instances`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick
from penstock.control.registry import alone_policy, builtin_policies
from penstock.core.frozen_dict import FrozenDict
from penstock.core.instance_decision import DecentralizedParams, ideal, probability
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.vote_count import VoteCount
from penstock.engines.port import Status
from penstock.errors import InputError
from penstock.files.lock import Lock
from penstock.files.text import explain_os_error
from penstock.runs.journal import JournalWriter
from penstock.runs.journal_header import make_header
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, begin_run, finish_run
from penstock.runs.scores import Scores

_POLICY = builtin_policies()[alone_policy()]
#: The engine of a spec: simulated instances, or processes.
SIMULATED, PROCESSES = "instances", "processes"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorInstances:
    """The instances of one operator during one tick."""

    name: str
    #: Instances that work, that wait for their start signal, and that are about to stop.
    active: int
    starting: int
    stopping: int
    #: Records/s that it received, and records that wait.
    load: float
    waiting: int
    #: Instances that decided, copies that they start, and instances that stop.
    voters: int
    copies: int
    stops: int
    #: Messages on behalf of its instances.
    messages: int
    #: Share of the time in which its instances processed records; None if unknown.
    busy: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRecords:
    """Records of the whole pipeline since the run began."""

    offered: int
    processed: int
    lost: int = 0
    waiting: int


class RunRecord:
    """Writes ticks to the journal of a run."""

    def __init__(
        self, journal: JournalWriter, params: DecentralizedParams, capacity: float
    ) -> None:
        self._journal, self._params, self._capacity = journal, params, capacity
        self._last_s, self._replica_s = 0.0, dict[str, float]()
        self.scores = Scores()
        journal.carry = self.scores.to_json

    def write(
        self,
        at_s: float,
        operators: Sequence[OperatorInstances],
        records: PipelineRecords,
        *,
        is_over: bool = False,
    ) -> None:
        """Write one tick; operators are in the order of the pipeline."""
        for operator in operators:
            spent_s = (operator.active + operator.stopping) * (at_s - self._last_s)
            self._replica_s[operator.name] = self._replica_s.get(operator.name, 0.0) + spent_s
        self._last_s = at_s
        status = Status(
            at=at_s,
            running=FrozenDict({each.name: each.active + each.stopping for each in operators}),
            requested=FrozenDict({each.name: each.active + each.starting for each in operators}),
            replica_s=FrozenDict(self._replica_s),
            offered_records=records.offered,
            processed_records=records.processed,
            dropped_records=records.lost,
            backlog_records=records.waiting,
            is_over=is_over,
        )
        snapshot = self._make_snapshot(at_s, operators)
        decision = _POLICY.decide([snapshot], [], self._params)
        tick = Tick(
            at=at_s,
            status=status,
            snapshot=snapshot,
            decision=decision,
            applied=decision.is_change,
            plan=FrozenDict(decision.changes),
        )
        self.scores.add(tick)
        self._journal.write(tick)

    def _make_snapshot(self, at_s: float, operators: Sequence[OperatorInstances]) -> Snapshot:
        feeders = [(), *((operator.name,) for operator in operators)]
        measured = {
            operator.name: self._measure(operator, upstream)
            for operator, upstream in zip(operators, feeders, strict=False)
        }
        return Snapshot(
            at=at_s,
            offered=FrozenDict({operators[0].name: operators[0].load}),
            operators=FrozenDict(measured),
            extra=FrozenDict({"messages": sum(operator.messages for operator in operators)}),
        )

    def _measure(self, operator: OperatorInstances, upstream: tuple[str, ...]) -> OperatorSnapshot:
        # a snapshot has at least one replica; the status says that all have ended
        running = max(1, operator.active + operator.stopping)
        states = {key: getattr(operator, key) for key in ("active", "starting", "stopping")}
        states["ideal"] = ideal(operator.load, self._capacity, self._params.r)
        return OperatorSnapshot(
            name=operator.name,
            upstream=upstream,
            parallelism=running,
            requested=max(1, operator.active + operator.starting),
            input_rate=operator.load,
            queue=operator.waiting,
            busy=operator.busy,
            service_time_s=1 / self._capacity,
            votes=self._count_votes(operator),
            extra=FrozenDict({"messages": operator.messages, "instances": FrozenDict(states)}),
        )

    def _count_votes(self, operator: OperatorInstances) -> VoteCount:
        # starting and stopping instances are in flight: what counts is where the votes lead to
        after = max(1, operator.active + operator.starting)
        before = max(1, after - operator.copies + operator.stops)
        load = operator.load / before
        return VoteCount(
            before=before,
            after=max(1, before + operator.copies - operator.stops),
            voters=operator.voters,
            copies=operator.copies,
            stops=operator.stops,
            load=load,
            capacity=self._capacity,
            probability=probability(load, before, self._capacity, self._params.r),
        )


@contextmanager
def record_run(
    directory: Path,
    spec: Mapping[str, Any],
    params: DecentralizedParams,
    schedule: LoopSchedule,
    capacity: float,
) -> Iterator[RunRecord]:
    """Make a run directory, and write its result at the end; without a result it was killed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError("--out", explain_os_error(error), where=str(directory)) from None
    header = make_header(spec, Decider(_POLICY, params, None), schedule, engine_kind=spec["engine"])
    with ExitStack() as stack:
        stack.enter_context(Lock(directory / LOCK))
        journal = stack.enter_context(begin_run(directory, spec, header))
        record = RunRecord(journal, params, capacity)
        yield record
        finish_run(directory, RunResult(spec=spec, scores=record.scores.result()))


def make_spec(
    engine: str, pipeline: str, load: str, seed: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the spec of a decentralized run; `options` are those that differ from the default."""
    return {
        "query": pipeline,
        "workload": load,
        "policy": alone_policy(),
        "engine": engine,
        "controller": "none",
        "seed": seed,
        "options": dict(options),
    }
