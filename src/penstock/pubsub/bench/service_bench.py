"""Measures the whole service on Spark: requests in, notices out, through topics and operators.

First as many publications as it takes, always with some waiting; then half of that rate, for the
delay from publish to notification.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.cluster.process_times import ProcessTimes, read_process_times
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.operator_config import BatchTiming, compute_min_interval_s
from penstock.errors import RunError
from penstock.pubsub.arrays import Doubles
from penstock.pubsub.bench.broker_traffic import publish_due, read_notice_times, subscribe_all
from penstock.pubsub.bench.delay_steps import DelayStep, measure_steps, read_stage
from penstock.pubsub.bench.engine_run import run_engine
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.request_load import BenchRequests, make_bench_requests
from penstock.pubsub.bench.service_result import (
    EndToEndResult,
    OperatorProfile,
    PhaseLength,
)
from penstock.pubsub.operators.topics import NOTICES, PARTIAL, PUBLICATIONS, REQUESTS
from penstock.pubsub.pipeline import ACCESS, EXIT, MATCH, PubSubOptions, build_pipeline
from penstock.pubsub.topic_broker import TopicBroker
from penstock.topics.embedded.topic import Topic

#: Replicas: matching takes nearly all the work.
REPLICAS = {ACCESS: 1, MATCH: 2, EXIT: 1}
#: Publications in a commit at full load.
_PUBLISH_ROWS = 2000
#: Time between commits at half load.
_STEP_S = 0.1
#: Pairs that wait at full load: some batches of each operator.
_WAITING_PAIRS = 2e9
#: The longest wait for anything.
_PATIENCE_S = 600.0
_CHECKED = 32


def run_end_to_end(
    spec: BenchSpec, directory: Path, length: PhaseLength, say: Callable[[str], None]
) -> EndToEndResult:
    """Start the service in a directory, subscribe, measure both phases and check."""
    say("encoding subscriptions and publications")
    requests = make_bench_requests(spec)
    options = PubSubOptions(match_slices=spec.slices, max_replicas=2, backend=spec.backend)
    pipeline = build_pipeline(requests.space, options)
    timing = BatchTiming(
        batch_s=length.batch_s,
        min_interval_s=compute_min_interval_s(length.batch_s),
        overhead_share=length.overhead_share,
    )
    say("starting Spark")
    with (
        TopicBroker(requests.space, directory, options) as broker,
        run_engine(pipeline, directory, timing, REPLICAS) as engine,
    ):
        bench = _Bench(spec, requests, broker, engine, say)
        bench.subscribe()
        full = bench.measure_full(length)
        delays, half_rate = bench.measure_half(length, full.publications_per_s)
        steps = bench.measure_steps(length)
        wrong = bench.count_wrong()
    rate = full.publications_per_s * spec.subscriptions
    return EndToEndResult(
        operations_per_s=rate,
        operations_per_cpu_s=rate * full.seconds / full.times.total_s,
        publications_per_s=full.publications_per_s,
        measured_s=full.seconds,
        times=full.times,
        profile=full.profile,
        half_rate_per_s=half_rate,
        delay_p50_s=float(np.percentile(delays, 50)),
        delay_p95_s=float(np.percentile(delays, 95)),
        delayed_publications=len(delays),
        delay_steps=steps,
        checked_publications=_CHECKED,
        wrong_publications=wrong,
        subscribe_s=bench.subscribe_s,
        load_average=os.getloadavg()[0],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FullLoad:
    publications_per_s: float
    seconds: float
    times: ProcessTimes
    profile: Mapping[str, OperatorProfile]


class _Bench:
    """The phases of one measurement."""

    def __init__(
        self,
        spec: BenchSpec,
        requests: BenchRequests,
        broker: TopicBroker,
        engine: SparkEngine,
        say: Callable[[str], None],
    ) -> None:
        self._spec, self._requests, self._broker = spec, requests, broker
        self._engine, self._say = engine, say
        self._logs = {name: BatchLog(engine.layout.batches(name)) for name in REPLICAS}
        self._notices = Topic.open(engine.layout.topic(NOTICES))
        self._records: dict[str, list[BatchRecord]] = {name: [] for name in REPLICAS}
        self._sent = self._read_up_to = 0
        #: The last publication of each commit at half load, when it was due, and sent.
        self._half: list[tuple[int, float, float]] = []
        self.subscribe_s = 0.0

    def subscribe(self) -> None:
        """Add all subscriptions; wait until they are in effect."""
        self._say(f"subscribing {self._spec.subscriptions:,} times")
        began_s = time.monotonic()
        rows = self._requests.subscriptions
        subscribe_all(self._broker, rows, lambda: self._wait(began_s))
        self.subscribe_s = time.monotonic() - began_s

    def measure_full(self, length: PhaseLength) -> _FullLoad:
        """Publish as fast as notices come, with a few seconds of work waiting."""
        self._say(f"full load for {length.warm_up_s + length.full_s:g} s")
        began_s = time.monotonic()
        self._read_records()
        start: tuple[float, int, ProcessTimes] | None = None
        while True:
            self._wait(began_s)
            self._read_records()
            done = self._count_done()
            elapsed_s = time.monotonic() - began_s
            while (self._sent - done) * self._spec.subscriptions < _WAITING_PAIRS:
                self._publish(_PUBLISH_ROWS, time.time())
            last = self._records[EXIT][-1] if self._records[EXIT] else None
            if last is None or elapsed_s < length.warm_up_s or not done:
                continue
            if start is None:
                start = (last.committed_at, done, read_process_times())
                self._records = {name: [] for name in REPLICAS}
            elif last.committed_at - start[0] >= length.full_s:
                break
        times = read_process_times() - start[2]
        seconds = last.committed_at - start[0]
        return _FullLoad(
            publications_per_s=(done - start[1]) / seconds,
            seconds=seconds,
            times=times,
            profile=self._profile(times),
        )

    def measure_half(self, length: PhaseLength, rate_per_s: float) -> tuple[Doubles, float]:
        """Publish steadily at half the rate; return the delays of publications."""
        self._drain()
        self._records = {name: [] for name in REPLICAS}
        rate_per_s /= 2
        self._say(f"half load, {rate_per_s:.0f} publications/s, for {length.half_s:g} s")
        position = self._notices.refresh()
        began_s, began_at, sent = time.monotonic(), time.time(), 0
        while (elapsed_s := time.monotonic() - began_s) < length.warm_up_s + length.half_s:
            due = int(rate_per_s * elapsed_s)
            if due > sent:
                due_at = began_at + sent / rate_per_s
                self._publish(due - sent, due_at)
                self._half.append((self._sent, due_at, time.time()))
                sent = due
            self._engine.advance(_STEP_S)
        self._drain()
        times = read_notice_times(self._notices, position)
        return times.due_from(began_at + length.warm_up_s).delays_s, rate_per_s

    def measure_steps(self, length: PhaseLength) -> tuple[DelayStep, ...]:
        """Return where publications waited at half load."""
        ends, due_at, sent_at = np.array(self._half).T
        is_counted = due_at >= due_at[0] + length.warm_up_s
        subscriptions, slices = self._spec.subscriptions, self._spec.slices
        records = self._records
        stages = (
            read_stage(ACCESS, records[ACCESS], REQUESTS, first=subscriptions),
            read_stage(MATCH, records[MATCH], PUBLICATIONS),
            read_stage(EXIT, records[EXIT], PARTIAL, rows=slices),
        )
        numbers = ends[is_counted].astype(np.int64) - 1
        return measure_steps(numbers, due_at[is_counted], sent_at[is_counted], stages)

    def count_wrong(self) -> int:
        """Compare the first publications of the newest commits with brute force."""
        end = self._notices.refresh()
        first = max(self._notices.first, end - 20 * _CHECKED)
        rows = pa.concat_batches(list(self._notices.read(first, end)))
        wrong = 0
        for row in rows.slice(0, _CHECKED).to_pylist():
            numbers = np.frombuffer(row["numbers"], "<u4")
            expected = self._requests.find_matches(row["payload"])
            wrong += not np.array_equal(np.sort(numbers), expected)
        return wrong

    def _publish(self, count: int, due_at: float) -> None:
        rows = self._requests.make_publications(self._sent, count)
        publish_due(self._broker, rows, due_at)
        self._sent += count

    def _drain(self) -> None:
        began_s = time.monotonic()
        while self._count_done() < self._sent:
            self._wait(began_s)
            self._read_records()

    def _count_done(self) -> int:
        """Return the publications whose lists were joined."""
        return self._read_up_to // self._spec.slices

    def _read_records(self) -> None:
        for name, log in self._logs.items():
            self._records[name] += log.read_new()
        if self._records[EXIT]:
            self._read_up_to = self._records[EXIT][-1].end.get(PARTIAL, 0)

    def _profile(self, times: ProcessTimes) -> dict[str, OperatorProfile]:
        return {
            name: _profile_operator([r for r in records if r.rows_in], times.total_s)
            for name, records in self._records.items()
        }

    def _wait(self, began_s: float) -> None:
        self._engine.advance(0.1)
        if errors := self._engine.operator_errors:
            raise RunError(f"operators failed: {dict(errors)}")
        if time.monotonic() - began_s > _PATIENCE_S:
            raise RunError(f"the service did not answer within {_PATIENCE_S:g} s")


def _profile_operator(records: list[BatchRecord], total_s: float) -> OperatorProfile:
    count = max(1, len(records))
    cpu_s = sum(task.cpu_s or 0.0 for record in records for task in record.tasks)
    return OperatorProfile(
        batches=len(records),
        rows_per_batch=sum(record.rows_in for record in records) / count,
        batch_s=sum(record.committed_at - record.planned_at for record in records) / count,
        task_s=sum(max(task.busy_s for task in record.tasks) for record in records) / count,
        cpu_share=cpu_s / total_s,
    )
