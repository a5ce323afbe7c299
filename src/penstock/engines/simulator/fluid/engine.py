"""The fluid simulator behind the engine port: adds time, rescaling, latency and a monitor."""

from collections.abc import Iterable, Mapping

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.engines.events import DroppedEvent, Event, RunningEvent
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.simulator.fluid.latency import Delays
from penstock.engines.simulator.fluid.monitor import FluidMonitor, Scrape
from penstock.engines.simulator.fluid.rescale import RescaleInProgress
from penstock.engines.simulator.fluid.source_topic import SourceTopic
from penstock.engines.simulator.fluid.step import FluidFlow, Load, Network, step
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Monitor, Profile
from penstock.errors import NotReadyError, RescaleError

#: One second: short compared to pauses and windows, long enough for a fast simulation.
STEP_S = 1.0


class FluidEngine:
    """A simulated pipeline that can be observed and rescaled.

    `offered` yields the whole records of each second, by source.
    """

    def __init__(
        self,
        pipeline: SimulatedPipeline,
        profile: Profile,
        offered: Mapping[str, Iterable[int]],
        *,
        monitor: Monitor | None = None,
        seed: int = 0,
    ) -> None:
        self._pipeline, self._profile = pipeline, profile
        self._network = Network.of(pipeline, profile.queues.buffer_s)
        self._names = self._network.names
        self._operators = [
            next(op for op in pipeline.operators if op.name == n) for n in self._names
        ]
        self._topics = {
            i: SourceTopic(offered[name], STEP_S, profile.queues)
            for i, name in enumerate(self._names)
            if name in offered
        }
        self._flows: tuple[FluidFlow, ...] = self._network.start()
        self._steps = 0
        self._change = RescaleInProgress(profile.rescaling, self._operators)
        self._monitor = FluidMonitor(self._network, monitor or profile.monitor, seed)
        self._replica_s = [0.0] * len(self._names)
        self._delays = Delays(pipeline, self._network, profile.queues, STEP_S)
        self._events: list[Event] = []
        self._pause_s = 0.0
        self._was_paused = False

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._steps * STEP_S

    @property
    def capabilities(self) -> Capabilities:
        """Changes of replicas only; the profile defines which operators pause for a change."""
        return Capabilities(pauses=self._change.pausing_operators())

    def advance(self, seconds: float) -> None:
        """Advance simulated time in whole steps."""
        for _ in range(round(seconds / STEP_S)):
            self._step()

    def observe(self) -> Snapshot:
        """Return the monitor's window; `NotReadyError` while the whole job restarts."""
        if self._change.stops_all(self.now_s):
            raise NotReadyError("the pipeline restarts")
        bounds = {op.name: self._max_replicas(op.max_replicas) for op in self._operators}
        return self._monitor.snapshot(
            self.now_s, self._change.running, self._change.requested, bounds
        )

    def apply(self, plan: Plan) -> None:
        """Start a change; `RescaleError` while the whole job restarts for the last one."""
        bounds = {op.name: self._max_replicas(op.max_replicas) for op in self._operators}
        check_plan(plan, bounds, self.capabilities)
        if self._change.stops_all(self.now_s):
            raise RescaleError("the last change is still being carried out")
        wanted = {self._names.index(name): k for name, k in plan.replicas.items()}
        self._change.request(wanted, self.now_s)

    def status(self) -> Status:
        """Return replicas, latency, events and counts."""
        latency, age_s = self._delays.take()
        events, self._events = tuple(self._events), []
        return Status(
            at=self.now_s,
            requested=FrozenDict(zip(self._names, self._change.requested, strict=True)),
            running=FrozenDict(zip(self._names, self._change.running, strict=True)),
            latency=latency,
            age_s=age_s,
            pause_s=self._pause_s,
            replica_s=FrozenDict(zip(self._names, self._replica_s, strict=True)),
            events=events,
            offered_records=sum(self._flows[i].arrived for i in self._topics),
            processed_records=sum(self._flows[i].processed for i in self._topics),
            dropped_records=sum(flow.dropped for flow in self._flows),
            backlog_records=sum(self._flows[i].queue for i in self._topics),
        )

    @property
    def flows(self) -> dict[str, FluidFlow]:
        """Counters and queue of every operator, by name."""
        return dict(zip(self._names, self._flows, strict=True))

    def _max_replicas(self, own: int | None) -> int | None:
        return own if own is not None else self._profile.max_replicas

    def _step(self) -> None:
        change, began_s = self._change, self.now_s
        if change.is_pending:
            self._advance_change(began_s)
        before = self._flows
        self._flows = step(self._network, before, self._loads(began_s), STEP_S)
        self._steps += 1
        now_s = self.now_s
        for i, topic in self._topics.items():
            taken = topic.take(self._flows[i].processed - before[i].processed, now_s)
            self._delays.count(i, taken, before, self._flows)
            # after `take`: a record that was read in this step does not expire
            if dropped := topic.expire(now_s):
                self._expire(i, dropped)
        for i, k in enumerate(change.running):
            self._replica_s[i] += k * STEP_S
        self._scrape(now_s, paused=change.stops_all(began_s))

    def _loads(self, now_s: float) -> list[Load]:
        offered = [0] * len(self._names)
        for i, topic in self._topics.items():
            offered[i] = topic.arrive()
        return list(map(Load, offered, self._change.running, self._change.speeds(now_s)))

    def _advance_change(self, now_s: float) -> None:
        for event in self._change.advance(now_s):
            self._events.append(event)
            if isinstance(event, RunningEvent) and self._profile.rescaling.drops_queues:
                self._drop_queues(now_s)

    def _scrape(self, now_s: float, *, paused: bool) -> None:
        if paused:
            self._pause_s += STEP_S
        elif self._was_paused:
            self._monitor.forget(Scrape(now_s, self._flows, tuple(self._replica_s)))
        elif self._monitor.is_due(now_s):
            self._monitor.scrape(Scrape(now_s, self._flows, tuple(self._replica_s)))
        self._was_paused = paused

    def _expire(self, i: int, dropped: int) -> None:
        flows = list(self._flows)
        flow = flows[i]
        flows[i] = flow._replace(queue=flow.queue - dropped, dropped=flow.dropped + dropped)
        self._flows = tuple(flows)
        self._report_drop(i, "retention", dropped)

    def _drop_queues(self, now_s: float) -> None:
        flows = []
        for i, flow in enumerate(self._flows):
            if i in self._topics:
                self._topics[i].take(flow.queue, now_s)
            if flow.queue:
                self._report_drop(i, "restart", flow.queue)
            flows.append(flow._replace(queue=0, dropped=flow.dropped + flow.queue))
        self._flows = tuple(flows)

    def _report_drop(self, i: int, cause: str, records: int) -> None:
        causes = FrozenDict({cause: records})
        name = self._names[i]
        self._events.append(DroppedEvent(at=self.now_s, operator=name, causes=causes))
