"""The discrete-time simulation: messages, records and decisions of every step.

A step has the order of section 5.1: messages of the step before arrive; the records of the step
are sent; instances whose turn it is decide; their announcements arrive in the same step; instances
process records. So a duplication takes three steps and a deletion two.
"""

from collections.abc import Callable
from itertools import count
from random import Random

from penstock.core.instance_decision import decide_alone
from penstock.decentralized.simulator.counted_graph import CountedGraph
from penstock.decentralized.simulator.exact_graph import ExactGraph
from penstock.decentralized.simulator.instance_graph import InstanceGraph, SimulatedInstance
from penstock.decentralized.simulator.loads import Loads, make_loads
from penstock.decentralized.simulator.network import SimulatedNetwork
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.timeline import (
    OperatorSeries,
    RecordTotals,
    ScalingTimeline,
)


def simulate_setup(
    setup: DecentralizedSetup, on_step: Callable[[int], None] = lambda _: None
) -> ScalingTimeline:
    """Simulate a setup; loads, decisions and faults draw from separate generators of its seed."""
    loads = make_loads(setup, Random(f"{setup.seed}/loads"))
    return _Simulation(setup, loads).run(on_step)


class _Simulation:
    """The state of one simulation."""

    def __init__(self, setup: DecentralizedSetup, loads: Loads) -> None:
        self._setup, self._loads = setup, loads
        self._decision = setup.decision
        self._numbers = count()
        self._draw = Random(f"{setup.seed}/decisions").random
        phases = Random(f"{setup.seed}/phases")
        #: Instances that are not gone, by operator, in birth order.
        self._instances = [
            [self._make_first(operator, place, phases) for place in range(setup.instances)]
            for operator in range(setup.operators)
        ]
        self._graph = self._make_graph()
        self._crashes = _draw_crashes(setup)
        self._series = tuple(OperatorSeries() for _ in range(setup.operators))
        self._deciders: dict[tuple[int, int], int] = {}

    def run(self, on_step: Callable[[int], None]) -> ScalingTimeline:
        """Run all steps."""
        for step in range(self._setup.steps):
            for instance in self._all():
                instance.received = 0
            self._graph.deliver(step)
            self._crash(step)
            self._graph.send_records([load[step] for load in self._loads], step)
            self._decide(step)
            self._graph.announce(step)
            self._process(step)
            self._measure(step)
            on_step(step)
        return ScalingTimeline(
            setup=self._setup,
            operators=self._series,
            actions=tuple(self._graph.actions),
            deciders=self._deciders,
            records=self._total_records(),
        )

    def _make_graph(self) -> InstanceGraph:
        setup = self._setup
        if setup.mode == "counted":
            return CountedGraph(self._instances, self._make_copy)
        network = SimulatedNetwork(
            Random(f"{setup.seed}/network"),
            loss=setup.message_loss,
            message_delay=setup.message_delay,
            record_delay=setup.record_delay,
        )
        return ExactGraph(self._instances, self._make_copy, network)

    def _make_first(self, operator: int, place: int, phases: Random) -> SimulatedInstance:
        """Make one of the first instances; their turns are spread over one period."""
        return SimulatedInstance(
            operator=operator,
            number=next(self._numbers),
            is_keeper=place == 0,
            active_since=-phases.randrange(self._setup.every),
        )

    def _make_copy(self, original: SimulatedInstance) -> SimulatedInstance:
        copy = SimulatedInstance(operator=original.operator, number=next(self._numbers))
        self._instances[original.operator].append(copy)
        return copy

    def _decide(self, step: int) -> None:
        for operator, instances in enumerate(self._instances):
            deciders = [i for i in instances if self._has_turn(i, step)]
            self._deciders[operator, step] = len(deciders)
            changes = [(instance, self._decide_alone(instance)) for instance in deciders]
            for instance, change in changes:
                if change:
                    self._graph.start_action(instance, change, step)

    def _has_turn(self, instance: SimulatedInstance, step: int) -> bool:
        # with a delay, the records of the first steps have not arrived everywhere
        is_early = step <= self._setup.record_delay
        if is_early or instance.active_since is None or instance.is_stopping or instance.is_gone:
            return False
        age = step - instance.active_since
        return age > 0 and age % self._setup.every == 0

    def _decide_alone(self, instance: SimulatedInstance) -> int:
        return decide_alone(
            instance.received,
            self._graph.count_siblings(instance),
            self._setup.capacity,
            self._decision,
            is_keeper=instance.is_keeper,
            draw=self._draw,
        )

    def _process(self, step: int) -> None:
        for operator, series in enumerate(self._series):
            processed = 0
            for instance in self._instances[operator]:
                if instance.active_since is not None and not instance.is_gone:
                    done = min(instance.waiting, self._setup.capacity)
                    instance.waiting -= done
                    processed += done
                    self._graph.note_processed(instance, done, step)
            series.processed.append(processed)
        for operator, instances in enumerate(self._instances):
            self._instances[operator] = [i for i in instances if not i.is_gone]

    def _crash(self, step: int) -> None:
        for draw in self._crashes.get(step, ()):
            alive = [i for i in self._all() if i.active_since is not None and not i.is_gone]
            if alive:
                self._graph.crash(alive[int(draw * len(alive))])

    def _measure(self, step: int) -> None:
        counts = self._graph.take_message_counts()
        for operator, series in enumerate(self._series):
            instances = self._instances[operator]
            series.load.append(self._loads[operator][step])
            series.instances.append(sum(i.active_since is not None for i in instances))
            series.messages.append(counts[operator])
            series.waiting.append(sum(i.waiting for i in instances))

    def _total_records(self) -> RecordTotals:
        idle = [i for i in self._all() if i.active_since is None]
        return RecordTotals(
            sent=sum(map(sum, self._loads)),
            processed=sum(sum(series.processed) for series in self._series),
            lost=self._graph.lost,
            waiting_at_idle=sum(i.waiting for i in idle),
        )

    def _all(self) -> list[SimulatedInstance]:
        return [instance for instances in self._instances for instance in instances]


def _draw_crashes(setup: DecentralizedSetup) -> dict[int, list[float]]:
    """Return the draws that choose the instances which crash, by step."""
    random = Random(f"{setup.seed}/crashes")
    crashes: dict[int, list[float]] = {}
    for _ in range(setup.crashes):
        crashes.setdefault(random.randrange(setup.steps), []).append(random.random())
    return crashes
