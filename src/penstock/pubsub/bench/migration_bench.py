"""Measures what a migration costs: slices of AP, M and EP move while publications flow.

A slice moves at the boundary of two batches. Its subscriptions are files that every replica maps,
so only the matcher is built again where the slice was not before.
"""

import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from penstock.core.decision import Move
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.slice_assignment import read_homes
from penstock.engines.port import Plan
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.operator_config import BatchTiming
from penstock.errors import InputError, RunError
from penstock.pubsub.bench.broker_traffic import (
    NoticeTimes,
    publish_due,
    read_notice_times,
    subscribe_all,
)
from penstock.pubsub.bench.engine_run import run_engine
from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.request_load import BenchRequests, make_bench_requests
from penstock.pubsub.operators.topics import NOTICES, PARTIAL
from penstock.pubsub.pipeline import ACCESS, EXIT, MATCH, PubSubOptions, build_pipeline
from penstock.pubsub.topic_broker import TopicBroker
from penstock.topics.embedded.topic import Topic

#: The paper's slices: AP, M, EP.
SLICES = {ACCESS: 4, MATCH: 8, EXIT: 4}
REPLICAS = {ACCESS: 2, MATCH: 2, EXIT: 2}
#: As in the service.
_TIMING = BatchTiming(batch_s=1.0, min_interval_s=0.5)
_STEP_S, _PATIENCE_S = 0.1, 300.0
#: Publications that are due so long before the gap of a move may be delayed by it.
_AROUND_S = 1.0
#: Migrations begin when no more publications wait than are sent in this time.
_MAX_WAITING_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSpec:
    """What is measured."""

    #: Subscriptions in each slice of M.
    per_slice: int
    #: Migrations of each operator.
    moves: int
    publications_per_s: float
    #: Time between migrations.
    pause_s: float
    load: BenchSpec

    def __post_init__(self) -> None:
        bounds = {"--per-slice": self.per_slice, "--moves": self.moves}
        for name, number in bounds.items():
            if number < 1:
                raise InputError(name, f"must be at least 1, got {number}")
        for name, value in {"--rate": self.publications_per_s, "--pause": self.pause_s}.items():
            if not 0 < value < math.inf:
                raise InputError(name, f"must be above 0 and finite, got {value:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceMigration:
    """One migration."""

    operator: str
    asked_at: float
    #: The commits of the batch before, and of the first one with the slices at their new place.
    before_at: float
    done_at: float

    @property
    def gap_s(self) -> float:
        """The time between the two commits."""
        return self.done_at - self.before_at


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """Figures of the migrations of one operator, with so many subscriptions in a slice of M."""

    operator: str
    per_slice: int
    moves: int
    #: From the request to the commit of the first batch at the new place.
    migration_mean_s: float
    migration_std_s: float
    #: The time between two commits of the operator: usual, and around a move, as a ratio to it.
    usual_gap_s: float
    #: 95 % of the gaps without a move are below this, as a ratio to the usual one.
    usual_ratio_p95: float
    gap_ratio_median: float
    gap_ratio_max: float
    #: Delay from publish to notification, away from moves and around them.
    usual_delay_p50_s: float
    usual_delay_max_s: float
    moved_delay_p50_s: float
    moved_delay_max_s: float
    load_average: float


def run_migration_bench(
    spec: MigrationSpec, directory: Path, operators: Sequence[str], say: Callable[[str], None]
) -> list[MigrationResult]:
    """Start the service, subscribe, and migrate slices of each operator while events flow."""
    say("encoding subscriptions and publications")
    load = replace(spec.load, subscriptions=spec.per_slice * SLICES[MATCH], slices=SLICES[MATCH])
    requests = make_bench_requests(load)
    options = PubSubOptions(
        access_slices=SLICES[ACCESS],
        match_slices=SLICES[MATCH],
        exit_slices=SLICES[EXIT],
        max_replicas=2,
        backend=load.backend,
    )
    pipeline = build_pipeline(requests.space, options)
    say("starting Spark")
    with (
        TopicBroker(requests.space, directory, options) as broker,
        run_engine(pipeline, directory, _TIMING, REPLICAS) as engine,
    ):
        bench = _MigrationBench(spec, requests, broker, engine, say)
        bench.subscribe()
        bench.settle()
        return [bench.measure(operator) for operator in operators]


class _MigrationBench:
    """A steady flow of publications, and migrations in it."""

    def __init__(
        self,
        spec: MigrationSpec,
        requests: BenchRequests,
        broker: TopicBroker,
        engine: SparkEngine,
        say: Callable[[str], None],
    ) -> None:
        self._spec, self._requests, self._broker = spec, requests, broker
        self._engine, self._say = engine, say
        self._logs = {name: BatchLog(engine.layout.batches(name)) for name in SLICES}
        self._records: dict[str, list[BatchRecord]] = {name: [] for name in SLICES}
        self._notices = Topic.open(engine.layout.topic(NOTICES))
        self._draw = random.Random(spec.load.seed)
        self._sent, self._due_at = 0, 0.0

    def subscribe(self) -> None:
        """Add all subscriptions; wait until they are in effect."""
        rows = self._requests.subscriptions
        self._say(f"subscribing {len(rows):,} times")
        deadline_s = time.monotonic() + _PATIENCE_S

        def wait() -> None:
            self._engine.advance(_STEP_S)
            self._check(deadline_s)

        subscribe_all(self._broker, rows, wait)

    def flow(self, seconds: float) -> None:
        """Publish at the rate for some time."""
        self._due_at = self._due_at or time.time()
        end_at = time.time() + seconds
        while time.time() < end_at:
            count = int((time.time() - self._due_at) * self._spec.publications_per_s)
            if count:
                rows = self._requests.make_publications(self._sent, count)
                publish_due(self._broker, rows, self._due_at)
                self._sent += count
                self._due_at += count / self._spec.publications_per_s
            self._engine.advance(_STEP_S)
            for name, log in self._logs.items():
                self._records[name] += log.read_new()
        self._check(time.monotonic() + _PATIENCE_S)

    def settle(self) -> None:
        """Publish until notices follow; matchers are built first, and rows wait meanwhile."""
        spec = self._spec
        self.flow(4 * spec.pause_s)
        began_s = time.monotonic()
        while (
            waiting := self._sent - self._count_done()
        ) > _MAX_WAITING_S * spec.publications_per_s:
            if time.monotonic() - began_s > _PATIENCE_S:
                problem = f"{waiting:,} publications still wait after {_PATIENCE_S:g} s"
                raise InputError("--rate", problem, "take a lower rate that the machine can follow")
            self.flow(spec.pause_s)

    def _count_done(self) -> int:
        """Return the publications whose lists were joined."""
        records = self._records[EXIT]
        return records[-1].end.get(PARTIAL, 0) // SLICES[MATCH] if records else 0

    def measure(self, operator: str) -> MigrationResult:
        """Migrate slices of one operator, one migration after the other."""
        spec = self._spec
        self._say(f"{spec.moves} migrations of {operator}, {spec.per_slice:,} in a slice")
        position, began_at = self._notices.refresh(), time.time()
        self._records = {name: [] for name in SLICES}
        self.flow(2 * spec.pause_s)
        migrations = [self._migrate(operator) for _ in range(spec.moves)]
        self.flow(spec.pause_s)
        commits_at = [record.committed_at for record in self._records[operator]]
        times = read_notice_times(self._notices, position).due_from(began_at)
        return summarise(migrations, commits_at, times, spec.per_slice)

    def _migrate(self, operator: str) -> SliceMigration:
        """Move a slice from the replica that has more of them to the other one."""
        homes = read_homes(self._records[operator][-1])
        counts = [sum(home == replica for home in homes.values()) for replica in (0, 1)]
        source = counts.index(max(counts))
        number = self._draw.choice([s for s, home in homes.items() if home == source])
        goal = 1 - source
        asked_at = time.time()
        move = Move(f"{operator}/{number}", f"{operator}/{source}", f"{operator}/{goal}")
        self._engine.apply(Plan(moves=(move,)))
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            self.flow(self._spec.pause_s)
            for before, after in pairwise(self._records[operator]):
                if after.planned_at > asked_at and read_homes(after).get(number) == goal:
                    return SliceMigration(
                        operator=operator,
                        asked_at=asked_at,
                        before_at=before.committed_at,
                        done_at=after.committed_at,
                    )
            self._check(deadline_s)

    def _check(self, deadline_s: float) -> None:
        if errors := self._engine.operator_errors:
            raise RunError(f"operators failed: {dict(errors)}")
        if time.monotonic() > deadline_s:
            raise RunError(f"the service did not answer within {_PATIENCE_S:g} s")


def summarise(
    migrations: Sequence[SliceMigration],
    commits_at: Sequence[float],
    times: NoticeTimes,
    per_slice: int,
) -> MigrationResult:
    """Return the figures of one operator from its commits and from the delays of publications."""
    moved = {migration.done_at for migration in migrations}
    gaps = [after - before for before, after in pairwise(commits_at) if after not in moved]
    usual_s = float(np.median(gaps))
    ratios = [migration.gap_s / usual_s for migration in migrations]
    times_s = [migration.done_at - migration.asked_at for migration in migrations]
    due_s, delay_s = times.due_s, times.delays_s
    is_near = np.zeros(len(due_s), np.bool_)
    for migration in migrations:
        # what waits, or comes, while the batch with the move is under way
        begins_at = migration.before_at - _AROUND_S
        is_near |= (due_s >= begins_at) & (due_s <= migration.done_at)
    if is_near.all() or not is_near.any():
        problem = f"{migrations[0].operator}: {is_near.sum()} of {len(due_s)} notices are of moves"
        hint = "take a longer --pause, or a lower --rate that the machine can follow"
        raise InputError("migrate-bench", problem, hint)
    return MigrationResult(
        operator=migrations[0].operator,
        per_slice=per_slice,
        moves=len(migrations),
        migration_mean_s=float(np.mean(times_s)),
        migration_std_s=float(np.std(times_s)),
        usual_gap_s=usual_s,
        usual_ratio_p95=float(np.percentile(gaps, 95)) / usual_s,
        gap_ratio_median=float(np.median(ratios)),
        gap_ratio_max=max(ratios),
        usual_delay_p50_s=float(np.median(delay_s[~is_near])),
        usual_delay_max_s=float(delay_s[~is_near].max()),
        moved_delay_p50_s=float(np.median(delay_s[is_near])),
        moved_delay_max_s=float(delay_s[is_near].max()),
        load_average=os.getloadavg()[0],
    )
