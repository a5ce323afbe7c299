"""The elasticity experiments of E-StreamHub, shortened, for real: hosts follow a load on Spark.

The pipeline runs as for a server. Hosts are names with a share of a core, which is emulated.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.control.registry import host_policy
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, RunError
from penstock.pipelines.host_declaration import Hosts
from penstock.pubsub.bench.broker_traffic import publish_due, read_notice_times, subscribe_all
from penstock.pubsub.bench.elasticity_result import (
    ElasticityResult,
    HostSample,
    compute_mean_load,
    cut_periods,
)
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.request_load import BenchRequests, make_bench_requests
from penstock.pubsub.operators.topics import NOTICES, PARTIAL
from penstock.pubsub.pipeline import EXIT, PubSubOptions, build_pipeline
from penstock.pubsub.server.engine_status import read_host_loads
from penstock.pubsub.server.service_directory import declare_space
from penstock.pubsub.server.spark_engine import SparkEngineRun, open_spark_engine
from penstock.runs.journal import read_ticks
from penstock.runs.run_directory import JOURNAL
from penstock.topics.embedded.topic import Topic
from penstock.workloads.registry import make_workload
from penstock.workloads.workload import Workload

#: By figure of the paper: the workload. Both take 40 minutes there.
WORKLOADS = {8: "trapezoid", 9: "market"}
PAPER_MINUTES = 40
#: Half of the paper's slices: every batch calls a function for each slice.
ACCESS_SLICES, MATCH_SLICES, EXIT_SLICES = 4, 8, 4
#: Seconds for which a rule must be broken, and between two migrations, in the paper.
PAPER_HOLD_S = 30.0
#: Long batches, because the calls of a batch cost the same however few publications it has.
INTERVAL_S, BATCH_S = 3.0, 2.0
_STEP_S, _SAMPLE_S = 0.2, 1.0
_PATIENCE_S, _RETURN_S = 600.0, 90.0
_CHECKED = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticitySpec:
    """What is run."""

    figure: int
    seconds: float
    peak_per_s: float
    hosts: Hosts
    period_s: float
    load: BenchSpec

    def __post_init__(self) -> None:
        if self.figure not in WORKLOADS:
            known = " or ".join(map(str, WORKLOADS))
            raise InputError("--figure", f"must be {known}, got {self.figure}")
        bounds = {
            "--seconds": (self.seconds, 30),
            "--peak": (self.peak_per_s, 1),
            "--period": (self.period_s, 1),
        }
        for name, (value, least) in bounds.items():
            if not least <= value <= 100_000:
                raise InputError(name, f"must be from {least} to 100000, got {value:g}")

    @property
    def speed_up(self) -> float:
        """How much shorter it is than in the paper."""
        return 60 * PAPER_MINUTES / self.seconds

    @property
    def hold_s(self) -> float:
        """How long a rule must be broken: shortened like the load, but some snapshots at least."""
        return max(PAPER_HOLD_S / self.speed_up, 2 * INTERVAL_S)

    def make_workload(self) -> Workload:
        """Return the load of the figure, shortened."""
        given = {"peak": self.peak_per_s}
        whole = make_workload(WORKLOADS[self.figure], PAPER_MINUTES, self.load.seed, given)
        return whole.sped_up(self.speed_up)

    def make_options(self) -> PubSubOptions:
        """Return how the space is served."""
        return PubSubOptions(
            access_slices=ACCESS_SLICES,
            match_slices=MATCH_SLICES,
            exit_slices=EXIT_SLICES,
            max_replicas=self.hosts.most,
            hosts=self.hosts,
        )

    def list_run_options(self) -> tuple[str, ...]:
        """Return the options of `penstock run`."""
        rules = (f"hold_s={self.hold_s:g}", f"grace_s={self.hold_s:g}")
        params = [text for rule in rules for text in ("--param", rule)]
        times = ("--batch", f"{BATCH_S:g}", "--interval", f"{INTERVAL_S:g}")
        return ("--policy", host_policy(), *params, *times)


def run_elasticity(
    spec: ElasticitySpec, directory: Path, say: Callable[[str], None]
) -> ElasticityResult:
    """Start the service in a directory, subscribe, follow the load and its hosts, and check."""
    say("encoding subscriptions and publications")
    requests = make_bench_requests(spec.load)
    options = spec.make_options()
    build_pipeline(requests.space, options).check()  # here a mistake is one message
    say("starting Spark")
    with (
        declare_space(directory, requests.space) as space,
        open_spark_engine(
            space, directory, options=options, run_options=spec.list_run_options()
        ) as engine,
    ):
        experiment = _Experiment(spec, requests, engine, say)
        experiment.subscribe()
        experiment.wait_for_quiet()
        return experiment.measure()


class _Experiment:
    """A load over time, and samples of the hosts that carry it."""

    def __init__(
        self,
        spec: ElasticitySpec,
        requests: BenchRequests,
        engine: SparkEngineRun,
        say: Callable[[str], None],
    ) -> None:
        self._spec, self._requests, self._engine, self._say = spec, requests, engine, say
        self._notices = Topic.open(engine.run / "topics" / NOTICES)
        self._exits = BatchLog(RunLayout(engine.run).batches(EXIT))
        self._samples: list[HostSample] = []

    def subscribe(self) -> None:
        """Add all subscriptions; wait until they are in effect."""
        rows = self._requests.subscriptions
        self._say(f"subscribing {len(rows):,} times")
        deadline_s = time.monotonic() + _PATIENCE_S
        subscribe_all(self._engine.broker, rows, lambda: self._wait(_STEP_S, deadline_s))

    def wait_for_quiet(self) -> None:
        """Wait until the hosts that subscriptions needed are released."""
        self._say("waiting until one host is left")
        deadline_s = time.monotonic() + _PATIENCE_S
        while self._count_hosts() > self._spec.hosts.start:
            self._wait(_SAMPLE_S, deadline_s)

    def measure(self) -> ElasticityResult:
        """Publish as the load says, and go on until hosts are back where they began."""
        spec, load = self._spec, self._spec.make_workload()
        self._say(
            f"figure {spec.figure}: {load.total_records:,} publications in {spec.seconds:g} s"
        )
        moves, position = self._count_moves(), self._notices.refresh()
        began_at = time.time()
        self._publish(load, began_at)
        self._drain(load, began_at)
        times = read_notice_times(self._notices, position, began_at)
        hosts = [len(sample.loads) for sample in self._samples]
        return ElasticityResult(
            periods=cut_periods(load, self._samples, times, spec.period_s),
            published=load.total_records,
            hosts_first=hosts[0],
            hosts_most=max(hosts),
            hosts_last=hosts[-1],
            moves=self._count_moves() - moves,
            cpu_mean=compute_mean_load(self._samples),
            delay_p50_s=float(np.percentile(times.delays_s, 50)),
            delay_p95_s=float(np.percentile(times.delays_s, 95)),
            checked_publications=_CHECKED,
            wrong_publications=self._count_wrong(position),
            load_average=os.getloadavg()[0],
        )

    def _publish(self, load: Workload, began_at: float) -> None:
        sent, at_s = 0, 0.0
        while at_s < load.duration_s:
            at_s = min(time.time() - began_at, load.duration_s)
            if due := load.count(0, at_s) - sent:
                # whole records become due one after the other
                due_s = load.when(np.arange(sent + 1, sent + due + 1, dtype=np.float64))
                rows = self._requests.make_publications(sent, due)
                publish_due(self._engine.broker, rows, began_at + due_s)
                sent += due
            self._sample(began_at)
            self._wait(_STEP_S)

    def _drain(self, load: Workload, began_at: float) -> None:
        """Wait for the last notice, and some time for hosts to be released."""
        self._say("waiting for the last notices, and for hosts to be released")
        deadline_s = time.monotonic() + _PATIENCE_S
        while self._count_done() < load.total_records:
            self._sample(began_at)
            self._wait(_STEP_S, deadline_s)
        until_s = time.monotonic() + _RETURN_S
        while self._count_hosts() > self._spec.hosts.start and time.monotonic() < until_s:
            self._sample(began_at)
            self._wait(_STEP_S)
        self._sample(began_at, is_last=True)

    def _sample(self, began_at: float, *, is_last: bool = False) -> None:
        at_s = time.time() - began_at
        if not is_last and self._samples and at_s < self._samples[-1].at_s + _SAMPLE_S:
            return
        loads = tuple(read_host_loads(self._engine.run).values())
        self._samples.append(HostSample(at_s=at_s, loads=loads))

    def _count_done(self) -> int:
        """Return the publications whose lists were joined; one without a match has no notice."""
        record = self._exits.last()
        return record.end.get(PARTIAL, 0) // MATCH_SLICES if record is not None else 0

    def _count_hosts(self) -> int:
        return len(read_host_loads(self._engine.run))

    def _count_moves(self) -> int:
        """Return the slices that were moved since the run began."""
        ticks = read_ticks(self._engine.run / JOURNAL)
        placed = [t.decision.placement for t in ticks if t.applied and t.decision is not None]
        return sum(len(placement.moves) for placement in placed if placement is not None)

    def _count_wrong(self, position: int) -> int:
        """Compare some publications, from begin to end, with brute force."""
        places = np.linspace(position, self._notices.refresh() - 1, _CHECKED).astype(int)
        wrong = 0
        for place in places.tolist():
            (row,) = pa.concat_batches(list(self._notices.read(place, place + 1))).to_pylist()
            expected = self._requests.find_matches(row["payload"])
            numbers = np.sort(np.frombuffer(row["numbers"], "<u4"))
            wrong += not np.array_equal(numbers, expected)
        return wrong

    def _wait(self, seconds: float, deadline_s: float | None = None) -> None:
        time.sleep(seconds)
        if self._engine.process.problem:
            raise RunError(self._engine.process.problem)
        if deadline_s is not None and time.monotonic() > deadline_s:
            raise RunError(f"the service did not answer within {_PATIENCE_S:g} s")
