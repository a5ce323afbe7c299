"""End-to-end latency in the fluid model: age at the source plus waiting time downstream.

The source topic knows the age of a record that the source reads. Each downstream queue then delays
it by the time its operator needs for the records waiting now. This is exact at constant speeds and
a good approximation while they change slowly.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import Histogram
from penstock.engines.simulator.fluid.step import FluidFlow, Network
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Queues


class Delays:
    """Latency histograms by path, and the mean age at the sources, since the last `take`."""

    def __init__(
        self, pipeline: SimulatedPipeline, network: Network, queues: Queues, step_s: float
    ) -> None:
        number = {name: i for i, name in enumerate(network.names)}
        by_name = {op.name: op for op in pipeline.operators}
        self._step_s = step_s
        self._hop_s = queues.hop_s + queues.batch_s
        self._service_s = [1 / capacity for capacity in network.capacity]
        #: Paths of each source: name, operators after the source, records at the sink per record.
        self._paths: dict[int, list[tuple[str, tuple[int, ...], float]]] = {}
        for path in pipeline.topology.paths():
            weight = 1.0
            for up, down in pairwise(path):
                weight *= by_name[up].sent.get(down, 1.0)
            entry = (" > ".join(path), tuple(number[name] for name in path[1:]), weight)
            self._paths.setdefault(number[path[0]], []).append(entry)
        self._clear()

    def _clear(self) -> None:
        self._latency: dict[str, Histogram] = {}
        self._age_sum, self._age_count = 0.0, 0

    def count(
        self,
        source: int,
        taken: Sequence[tuple[float, int]],
        before: Sequence[FluidFlow],
        after: Sequence[FluidFlow],
    ) -> None:
        """Count the records that a source read in one step, as pairs of age and number."""
        if not taken:
            return
        for age, records in taken:
            self._age_sum += age * records
            self._age_count += records
        for name, downstream, weight in self._paths[source]:
            fixed = self._hop_s * (len(downstream) + 1) + self._service_s[source]
            fixed += self._wait(downstream, before, after)
            histogram = self._latency.get(name)
            if histogram is None:
                histogram = self._latency[name] = Histogram()
            for age, records in taken:
                histogram.add(age + fixed, records * weight)

    def _wait(
        self, operators: Sequence[int], before: Sequence[FluidFlow], after: Sequence[FluidFlow]
    ) -> float:
        """Return the service times plus the waiting times at the current speeds."""
        wait_s = 0.0
        for i in operators:
            own_s = self._service_s[i]
            if queue := after[i].queue:
                rate = (after[i].processed - before[i].processed) / self._step_s
                own_s += queue / rate if rate else 0.0
            wait_s += own_s
        return wait_s

    def take(self) -> tuple[Mapping[str, Histogram], float | None]:
        """Return latency by path and the mean age at the sources, and reset both."""
        age_s = self._age_sum / self._age_count if self._age_count else None
        latency = FrozenDict(self._latency)
        self._clear()
        return latency, age_s
