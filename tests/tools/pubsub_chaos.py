"""Kill the driver of a publish/subscribe run at random, and compare all notices with brute force.

    python -m tests.tools.pubsub_chaos --kills 20 --seed 7 --scheme aspe

Meanwhile people publish, subscribe and unsubscribe, replicas change and slices move every second.
Nothing may be missing, nothing extra, nothing twice, and every change of a subscription takes
effect exactly at the publication that its ack names.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.pubsub.oracle import EVERYTHING, Traffic, check_notices, make_key
from tests.pubsub.test_matcher import key_bytes
from tests.tools.child import Child
from tests.tools.drive import PUBSUB
from tests.tools.processes import marked

from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pubsub.broker import Ack, Notice
from penstock.pubsub.pipeline import build_pipeline
from penstock.pubsub.topic_broker import TopicBroker

#: No more than this is waited for anything.
PATIENCE_S = 300.0
#: Requests come so often, so many of them.
STEP_S, PUBLICATIONS, CHANGES = 0.5, 5, 2
#: A kill comes so long after the driver was running; some come while it starts.
SOONEST_S, LATEST_S = 0.5, 8.0
EARLY = 0.25


@dataclass(kw_only=True)
class PubSubOutcome:
    """What happened; `check_notices` raises if something is wrong."""

    kills: int = 0
    early: int = 0
    publications: int = 0
    subscriptions: int = 0
    unsubscribed: int = 0
    matches: int = 0
    batches_again: int = 0
    seconds: float = 0.0
    delays_s: list[float] = field(default_factory=list)


class PubSubChaos:
    """People who publish and subscribe, and one driver after the other."""

    def __init__(self, directory: Path, scheme: str, seed: int) -> None:
        self._run, self._scheme = directory / "run", scheme
        self._draw = random.Random(seed)
        self._traffic = Traffic(make_key(scheme), seed=seed)
        self._mark = f"{directory.name}-{os.getpid()}/"
        self._starts = 0
        self.outcome = PubSubOutcome()
        self._acks: list[Ack] = []
        self._notices: list[Notice] = []
        self._positions = [0, 0]
        make_topics(build_pipeline(self._traffic.space, PUBSUB), RunLayout(self._run))
        self._broker = TopicBroker(self._traffic.space, self._run, PUBSUB)
        self._broker.__enter__()
        self._broker.submit([self._traffic.subscribe(EVERYTHING)])
        self._child = self._start()

    def begin(self) -> None:
        """Wait for the first ack: from here on every publication has a notice."""
        self._live_until(lambda: bool(self._acks), publish=False)

    def kill(self) -> None:
        """Let a driver run for a while, or only start, and kill it."""
        if self._draw.random() < EARLY:
            self.outcome.early += 1
        else:
            self._live_until(lambda: self._child.has_told("running"))
            # however slow the machine is, rows flow when the kill comes
            known = len(self._notices)
            self._live_until(lambda: len(self._notices) > known)
        end = time.monotonic() + self._draw.uniform(SOONEST_S, LATEST_S)
        self._live_until(lambda: time.monotonic() > end)
        os.kill(self._child.pid, signal.SIGKILL)
        self._child.wait(PATIENCE_S)
        self.outcome.kills += 1
        self._count()
        self._child = self._start()

    def finish(self) -> PubSubOutcome:
        """Wait for all notices and acks, let the driver end, and compare."""
        traffic, seen = self._traffic, self.outcome
        changes = 2 * len(traffic.predicates) - len(traffic.active)
        self._live_until(
            lambda: len(self._notices) >= len(traffic.events) and len(self._acks) >= changes,
            publish=False,
        )
        requests = len(traffic.events) + changes
        aside = self._run / "finish.tmp"
        aside.write_text(str(requests))
        aside.rename(self._run / "finish")
        assert self._child.wait(PATIENCE_S) == 0, f"the driver failed; see {self._run}"
        self._count()
        self._read()
        assert self._broker.read_refusals(0)[0] == []
        assert self._find_secrets() == [], "the run directory of an encrypted space has secrets"
        seen.matches = check_notices(traffic, self._acks, self._notices)
        seen.publications, seen.subscriptions = len(traffic.events), len(traffic.predicates)
        seen.unsubscribed = len(traffic.predicates) - len(traffic.active)
        return seen

    def _find_secrets(self) -> list[bytes]:
        """Return parts of the key, and predicates, in files of operators, topics and state."""
        if self._scheme == "plain":
            return []
        secrets = key_bytes(self._traffic.key)
        secrets |= {text.encode() for text in self._traffic.predicates.values()}
        found = set()
        for name in ("code", "topics", "state", "batches", "plans"):
            for path in (self._run / name).rglob("*"):
                data = path.read_bytes() if path.is_file() else b""
                found |= {part for part in secrets if part in data}
        return sorted(found)

    def close(self) -> None:
        """End whatever is left, whatever happened."""
        self._broker.__exit__(None, None, None)
        if self._child.code is None:
            os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait(PATIENCE_S)
        for process in marked(self._mark):
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _start(self) -> Child:
        self._starts += 1
        seed, mark = str(self._draw.randrange(2**31)), f"{self._mark}{self._starts}/"
        return Child(self._run, mark, "--seed", seed, "--pipeline", f"pubsub-{self._scheme}")

    def _live_until(self, is_so: object, *, publish: bool = True) -> None:
        """Publish and subscribe until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"still not so; see {self._run}"
            if self._child.code not in (None, -signal.SIGKILL):
                raise RuntimeError(f"the driver left with {self._child.code}; see {self._run}")
            if publish:
                self._broker.submit(self._traffic.draw_requests(PUBLICATIONS, CHANGES))
            self._read()
            time.sleep(STEP_S)

    def _read(self) -> None:
        acks, self._positions[0] = self._broker.read_acks(self._positions[0])
        notices, self._positions[1] = self._broker.read_notices(self._positions[1])
        self._acks += acks
        self._notices += notices

    def _count(self) -> None:
        told = [*self._child.all_told("begins"), *self._child.all_told("revived")]
        self.outcome.batches_again += sum(message["again"] for message in told)


def wreak(directory: Path, scheme: str, *, kills: int, seed: int) -> PubSubOutcome:
    """Kill so many times, let it finish, and compare."""
    began = time.monotonic()
    chaos = PubSubChaos(directory, scheme, seed)
    try:
        chaos.begin()
        for number in range(kills):
            chaos.kill()
            passed_s = time.monotonic() - began
            print(f"{passed_s:7.1f} s  kill {number + 1} of {kills}", file=sys.stderr, flush=True)
        outcome = chaos.finish()
    finally:
        chaos.close()
    outcome.seconds = round(time.monotonic() - began, 1)
    return outcome


def main() -> int:
    """Wreak as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--scheme", choices=("plain", "aspe"), default="aspe")
    args = parser.parse_args()
    seed = random.randrange(10**6) if args.seed is None else args.seed
    directory = Path(tempfile.mkdtemp(prefix="penstock-pubsub-chaos-"))
    print(f"seed {seed}, {directory}", file=sys.stderr, flush=True)
    outcome = wreak(directory, args.scheme, kills=args.kills, seed=seed)
    shutil.rmtree(directory)
    print(
        f"{outcome.kills} kills ({outcome.early} while starting) in {outcome.seconds:.0f} s,"
        f" {outcome.batches_again} batches run again: {outcome.publications} publications,"
        f" {outcome.subscriptions} subscriptions, {outcome.unsubscribed} of them ended;"
        f" {outcome.matches} matches, all as brute force has them"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
