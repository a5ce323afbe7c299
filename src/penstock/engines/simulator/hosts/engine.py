"""The simulator of hosts behind the engine port: slices move between hosts that come and go."""

from collections import deque

import numpy as np

from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import Histogram
from penstock.core.snapshot import HostSnapshot, SliceSnapshot, Snapshot
from penstock.engines.events import Event, RunningEvent
from penstock.engines.port import HOSTS, Capabilities, Plan, Status, check_plan
from penstock.engines.simulator.hosts.host_placement import HostPlacement
from penstock.engines.simulator.hosts.slice_flow import STEP_S, SliceFlow
from penstock.engines.simulator.hosts.slice_table import FloatArray, build_slice_table
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile
from penstock.errors import NotReadyError
from penstock.workloads.workload import Workload

#: Seconds between two readings of the probes.
PROBE_S = 1.0


class HostEngine:
    """A simulated pipeline of slices on hosts. A host is one processor that its slices share.

    Records arrive at random, with the rate of the load. The slices of an operator are alike; a
    record goes to one of them, or to all.
    """

    def __init__(
        self,
        pipeline: SimulatedPipeline,
        profile: Profile,
        load: Workload,
        *,
        hosts: int,
        seed: int,
    ) -> None:
        self._table = build_slice_table(pipeline, profile.rescaling)
        self._hop_s, self._window_s = profile.queues.hop_s, profile.monitor.window_s
        self._path = " > ".join(pipeline.topology.order)
        self._placement = HostPlacement(self._table, hosts)
        self._flow = SliceFlow(self._table)
        steps = round(load.duration_s / STEP_S)
        times_s = np.arange(steps + 1, dtype=np.float64) * np.float64(STEP_S)
        self._expected = np.diff(load.integrals(times_s))
        self._random = np.random.default_rng(seed)
        self._steps, self._offered = 0, 0
        self._latency = Histogram()
        self._host_s = 0.0
        self._events: list[Event] = []
        #: Readings of the probes: seconds of the run, and host-seconds used by each slice.
        self._probes: deque[tuple[float, FloatArray]] = deque([(0.0, self._flow.used_s.copy())])

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._steps * STEP_S

    @property
    def capabilities(self) -> Capabilities:
        """Slices move; hosts follow from the moves."""
        return Capabilities(moves_slices=True)

    def advance(self, seconds: float) -> None:
        """Advance simulated time in whole steps."""
        for _ in range(round(seconds / STEP_S)):
            self._step()

    def observe(self) -> Snapshot:
        """Return what the probes measured over the last window."""
        (begin_s, before), (end_s, after) = self._probes[0], self._probes[-1]
        if end_s <= begin_s:
            raise NotReadyError("no probe has been read yet")
        cpu = (after - before) / (end_s - begin_s)
        hosts = {name: self._observe_host(name, cpu) for name in self._placement.hosts}
        return Snapshot(at=self.now_s, hosts=FrozenDict(hosts))

    def _observe_host(self, name: str, cpu: FloatArray) -> HostSnapshot:
        slices = {
            self._table.names[row]: SliceSnapshot(
                cpu=float(cpu[row]), memory=float(self._table.state_mb[row])
            )
            for row in self._placement.slices_of(name)
        }
        return HostSnapshot(name=name, slices=FrozenDict(slices))

    def apply(self, plan: Plan) -> None:
        """Start to move slices: each stops until it has arrived."""
        check_plan(plan, {}, self.capabilities)
        self._placement.check_moves(plan.moves)
        before = len(self._placement.hosts)
        for row in self._placement.move(plan.moves):
            self._flow.moving_s[row] = self._draw_move_s(row)
        self._note_hosts(before)

    def _draw_move_s(self, row: int) -> float:
        mean_s, cv = self._table.move_s[row], self._table.move_cv[row]
        if not cv:
            return float(mean_s)
        return float(self._random.gamma(1 / cv**2, mean_s * cv**2))

    def status(self) -> Status:
        """Return hosts, delays and counts."""
        latency, self._latency = self._latency, Histogram()
        events, self._events = tuple(self._events), []
        processed = int(self._flow.passed[-1] + 1e-6)
        return Status(
            at=self.now_s,
            requested=FrozenDict({HOSTS: self._placement.used}),
            running=FrozenDict({HOSTS: len(self._placement.hosts)}),
            latency=FrozenDict({self._path: latency} if latency.count else {}),
            replica_s=FrozenDict({HOSTS: self._host_s}),
            events=events,
            offered_records=self._offered,
            processed_records=processed,
            backlog_records=self._offered - processed,
        )

    def _step(self) -> None:
        placement = self._placement
        expected = self._expected[self._steps] if self._steps < len(self._expected) else 0.0
        arrived = int(self._random.poisson(expected))
        self._offered += arrived
        if arrived:
            self._count_delays(arrived)
        self._flow.advance(arrived, placement.home, len(placement.hosts))
        self._host_s += len(placement.hosts) * STEP_S
        self._steps += 1
        self._release_hosts()
        if self._steps % round(PROBE_S / STEP_S) == 0:
            self._read_probes()

    def _count_delays(self, records: int) -> None:
        """Draw the slices of each record that arrives now; add up what it will wait in them."""
        wait_s = self._flow.wait_s(self._placement.home, len(self._placement.hosts))
        delays_s = np.full(records, self._hop_s * len(self._table.stages))
        for rows in self._table.stages:
            here = wait_s[rows]
            if self._table.share[rows.start] == 1:
                delays_s += here.max()
            else:
                delays_s += here[self._random.integers(len(here), size=records)]
        for delay_s in delays_s.tolist():
            self._latency.add(delay_s)

    def _release_hosts(self) -> None:
        """End hosts whose last slice has arrived elsewhere."""
        placement = self._placement
        if placement.used < len(placement.hosts) and not self._flow.moving_s.any():
            before = len(placement.hosts)
            placement.release_empty()
            self._note_hosts(before)

    def _note_hosts(self, before: int) -> None:
        hosts = len(self._placement.hosts)
        if hosts != before:
            event = RunningEvent(at=self.now_s, operator=HOSTS, replicas=hosts, before=before)
            self._events.append(event)

    def _read_probes(self) -> None:
        self._probes.append((self.now_s, self._flow.used_s.copy()))
        while self._probes[0][0] < self.now_s - self._window_s - STEP_S / 2:
            self._probes.popleft()
