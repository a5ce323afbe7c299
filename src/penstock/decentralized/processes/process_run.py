"""Runs a pipeline of processes under a changing load, and checks that no record is lost."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from penstock.decentralized.node_state import (
    NodeId,
    NodePhase,
    NodeState,
    build_pipeline,
)
from penstock.decentralized.processes.functions import count_directly
from penstock.decentralized.processes.launcher import Launcher
from penstock.decentralized.processes.launcher_link import (
    BEGIN,
    END_LOAD,
    ENDED,
    FINISH,
    FREEZE,
    FROZEN,
    LISTENING,
    LOAD_ENDED,
    STATUS,
)
from penstock.decentralized.processes.message_json import state_from_json, state_to_json
from penstock.decentralized.processes.node_config import name_of
from penstock.decentralized.processes.run_monitor import RunMonitor, RunSample
from penstock.decentralized.processes.run_result import ProcessRunResult, find_wrong_views
from penstock.decentralized.processes.run_spec import (
    MAX_EXTENSION,
    SINK,
    SOURCE,
    ProcessRunSpec,
)
from penstock.errors import RunError

#: Seconds between two samples.
_SAMPLE_S = 1.0
_PULSE_S = 0.05
#: Seconds without any progress after which records are given up for lost.
_PATIENCE_S = 20.0

Observer = Callable[[RunSample], None]


def run_processes(
    spec: ProcessRunSpec, observe: Observer = lambda _sample: None
) -> ProcessRunResult:
    """Run a pipeline from its start to its end; `RunError` if a process dies."""
    spec.check()
    return asyncio.run(_run(spec, observe))


async def _run(spec: ProcessRunSpec, observe: Observer) -> ProcessRunResult:
    run = _ProcessRun(spec, observe)
    async with Launcher(spec, run.listen) as launcher:
        work = asyncio.create_task(run.execute(launcher))
        launcher.failure.add_done_callback(lambda _: work.cancel())
        try:
            return await work
        except asyncio.CancelledError:
            if launcher.failure.done():
                await launcher.failure
            raise


class _ProcessRun:
    """The phases of one run: start, load, drain, quiet, end."""

    def __init__(self, spec: ProcessRunSpec, observe: Observer) -> None:
        self._spec, self._observe = spec, observe
        self._monitor = RunMonitor(spec)
        self._samples: list[RunSample] = []
        self._launcher: Launcher
        self._frozen: set[str] = set()
        self._is_frozen = self._is_load_over = False
        #: The last states of the nodes that were there at the end.
        self._last_states: dict[NodeId, NodeState] = {}
        self._is_finished = False
        self._load_began_s, self._sample_due_s = 0.0, _SAMPLE_S

    def listen(self, node: str, kind: str, body: Any) -> None:
        """Take a message of a node."""
        if kind == LISTENING and self._is_frozen:
            self._launcher.send(node, FREEZE)
        elif kind == STATUS:
            self._monitor.note_status(node, self._launcher.operators[node], body)
        elif kind == LOAD_ENDED:
            self._is_load_over = True
        elif kind == FROZEN:
            self._frozen.add(node)
        elif kind == ENDED:
            self._monitor.note_end(node)
            if self._is_finished:
                state = state_from_json(body)
                self._last_states[state.node] = state

    async def execute(self, launcher: Launcher) -> ProcessRunResult:
        """Go through all phases."""
        self._launcher = launcher
        await self._start_pipeline()
        self._load_began_s = launcher.elapsed_s()
        await self._wait(self._has_enough_load, math.inf)
        self._command_all(END_LOAD)
        # without progress records are lost, and the result names them
        await self._wait(self._is_drained, _PATIENCE_S)
        self._is_frozen = True
        self._command_all(FREEZE)
        if not await self._wait(self._is_quiet, _PATIENCE_S):
            raise RunError(f"scaling actions do not end: {self._describe_phases()}")
        self._is_finished = True
        self._command_all(FINISH)
        if not await self._wait(lambda: not launcher.operators, _PATIENCE_S):
            raise RunError(f"processes do not end: {', '.join(launcher.operators)}")
        return self._result()

    async def _start_pipeline(self) -> None:
        """Start the first nodes, and tell each its neighbours; the sink first, the source last."""
        sizes = {SOURCE: 1, SINK: 1}
        nodes = [
            await asyncio.gather(
                *(self._launcher.start_node(name) for _ in range(sizes.get(name, instances)))
            )
            for instances in [self._spec.instances]
            for name in self._spec.names
        ]
        states = build_pipeline(nodes)
        for node in reversed(states):
            self._launcher.send(name_of(node), BEGIN, state_to_json(states[node]))

    def _command_all(self, command: str) -> None:
        for node in self._launcher.operators:
            self._launcher.send(node, command)

    async def _wait(self, is_over: Callable[[], bool], patience_s: float) -> bool:
        """Wait for a condition, and take samples; False if nothing happens for too long."""
        progress, progress_s = self._progress(), self._launcher.elapsed_s()
        while not is_over():
            await asyncio.sleep(_PULSE_S)
            now_s = self._launcher.elapsed_s()
            if now_s >= self._sample_due_s:
                self._sample_due_s = now_s + _SAMPLE_S
                self._samples.append(self._monitor.sample(now_s, is_loaded=not self._is_load_over))
                self._observe(self._samples[-1])
            if (latest := self._progress()) != progress:
                progress, progress_s = latest, now_s
            elif now_s - progress_s > patience_s:
                return False
        return True

    def _progress(self) -> tuple[int, ...]:
        """Return numbers that change as long as anything happens."""
        ledger, monitor = self._monitor.ledger, self._monitor
        processed = (ledger.processed(name) for name in self._spec.names[1:])
        return (*processed, monitor.messages.total(), len(self._launcher.operators))

    def _has_enough_load(self) -> bool:
        elapsed_s = self._launcher.elapsed_s() - self._load_began_s
        asked_s = self._spec.seconds
        has_actions = len(self._monitor.actions) >= self._spec.min_actions
        return elapsed_s >= asked_s and (has_actions or elapsed_s >= MAX_EXTENSION * asked_s)

    def _is_drained(self) -> bool:
        return self._is_load_over and self._monitor.ledger.is_settled

    def _is_quiet(self) -> bool:
        """Whether no node decides any more, and every action has ended."""
        nodes, phases = self._launcher.operators, self._monitor.phases
        return all(
            node in self._frozen and phases.get(node) == NodePhase.ACTIVE.value for node in nodes
        )

    def _describe_phases(self) -> str:
        phases = self._monitor.phases.items()
        return ", ".join(f"{node} is {phase}" for node, phase in phases if phase != "active")

    def _result(self) -> ProcessRunResult:
        spec, monitor, launcher = self._spec, self._monitor, self._launcher
        expected = count_directly(spec.operators, range(monitor.ledger.sent), spec.seed)
        return ProcessRunResult(
            spec=spec,
            seconds=launcher.elapsed_s(),
            sent=monitor.ledger.sent,
            accounts=tuple(monitor.ledger.accounts()),
            actions=tuple(monitor.actions),
            messages=monitor.messages,
            samples=tuple(self._samples),
            peak_processes=launcher.peak,
            started_processes=launcher.started,
            latencies_s=tuple(monitor.latencies_s),
            has_right_counts=monitor.counts == expected,
            wrong_views=tuple(find_wrong_views(self._last_states.values())),
            strangers=launcher.strangers + monitor.strangers,
        )
