"""Kill real processes of a running pipeline, at random, and compare every topic with an oracle.

    python -m tests.tools.chaos --kills 20 --seed 7 --pipeline words
    python -m tests.tools.chaos --kills 20 --kafka      (rows in Kafka; its broker is killed, too)

The driver runs in a process of its own and is started again on the same run directory whenever
it is gone. By turns the driver, a Python process of Spark or the JVM is killed, sometimes while
everything starts; replicas change and slices move all the time. Afterwards every row must be in
every topic exactly once, and no process may be left.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.tools.audit import Auditor
from tests.tools.child import Child
from tests.tools.drive import PIPELINES, SOURCE
from tests.tools.file_source import FileSource
from tests.tools.kafka_broker import KafkaBroker
from tests.tools.kafka_rows import compare_foreign, place_in
from tests.tools.oracle import differences
from tests.tools.processes import Process, is_at_work, marked
from tests.tools.ready_oracles import ORACLES, problems

from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.topic import Topic

#: Whose turn it is, over and over. What comes right after a restart may come while it starts.
TURNS = ("driver", "jvm", "worker", "source", "jvm", "driver", "committer", "daemon", "committer")
#: The share of kills after a restart that come while it starts.
EARLY = 0.5
#: The share of other kills that come while a batch is being committed, if one is so soon.
IN_A_COMMIT, SOON_S = 0.5, 3.0
#: A kill comes so many seconds after the driver reported that it is running.
SOONEST_S, LATEST_S = 0.3, 6.0
#: Rows/s of files that arrive.
RATE = 30.0
#: Data flows if rows wait and others were committed within these seconds; how long that is
#: waited for before a kill.
FLOWING_S, FLOW_PATIENCE_S = 3.0, 60.0
#: Of so many kills or more, at least this share must come while data flows.
MANY_KILLS, MIN_MID_FLOW = 20, 0.6
#: With chains: the share of starts that run them as single operators; the others cut them.
CHAINED = 0.7
#: No more than this is waited for anything, and in the end while no row is read.
PATIENCE_S = 300.0


@dataclass(kw_only=True)
class Outcome:
    """What happened, and what is wrong; nothing should be."""

    seed: int
    directory: str
    kills: dict[str, int] = field(default_factory=dict)
    #: Kills of the driver or the JVM while they started, and kills while data flowed: rows
    #: waited, and others had been committed in the seconds before.
    early: int = 0
    mid_flow: int = 0
    restarts: int = 0
    #: Drivers that left although nobody had killed them or their JVM.
    gave_up: int = 0
    #: Operators that the engine started again by itself.
    revived: int = 0
    #: Batches that were run again, and those of them that had a record already.
    again: int = 0
    recorded: int = 0
    #: Starts that found the directory locked, and the longest wait.
    lock_waits: int = 0
    longest_lock_wait_s: float = 0.0
    produced: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    #: Starts with chains, and those that had to process rows between their members first.
    chained: int = 0
    leftovers: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Exactly once, or not."""
        return "WRONG" if self.wrong else "exactly once"


class Chaos:
    """One run directory, one driver after the other, and who kills them."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        name: str = "chaos",
        *,
        has_chains: bool = False,
        broker: KafkaBroker | None = None,
    ) -> None:
        self._broker, self._topics = broker, broker.url(f"chaos-{seed}") if broker else None
        self._run, self._name, self._has_chains = directory / "run", name, has_chains
        name = "chaos-chains" if has_chains else name
        self._driven = name
        self._rng = random.Random(seed)
        self._mark = f"{directory.name}-{os.getpid()}/"
        self._starts = 0
        self._asked_for = False
        self.outcome = Outcome(seed=seed, directory=str(directory))
        pipeline, layout = PIPELINES[name](directory / SOURCE), RunLayout(self._run)
        pipeline = place_in(pipeline, self._topics)
        make_topics(pipeline, layout)
        self._source = next(iter(pipeline.feeds), "numbers")
        self._files = None if pipeline.feeds else FileSource(directory / SOURCE, RATE)
        self._inputs = {
            (topic, op.name): Topic.open(layout.topic(topic))
            for op in pipeline.operators.values()
            for topic in op.reads
        }
        with_state = [ORACLES[name].operator if name in ORACLES else "fifties"]
        self._auditor = Auditor(
            {topic: layout.topic(topic) for topic in pipeline.topics},
            batches={operator: layout.batches(operator) for operator in with_state},
        )
        self._child = self._start()

    # --- drivers

    def _start(self) -> Child:
        self._starts += 1
        seed = str(self._rng.randrange(2**31))
        mark = f"{self._mark}{self._starts}/"
        options = ["--seed", seed, "--pipeline", self._driven]
        if self._has_chains and self._rng.random() < CHAINED:
            self.outcome.chained += 1
            options.append("--chain")
        if self._topics is not None:
            options += ["--topics", self._topics]
        return Child(self._run, mark, *options)

    def _restart(self) -> None:
        """Start the next driver at once, if the present one is gone or about to go."""
        code = self._child.wait(PATIENCE_S)
        if code is None:
            self.outcome.wrong.append("the driver hangs although its JVM was killed")
            os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait(PATIENCE_S)
        self._count(self._child)
        self.outcome.restarts += 1
        self._child = self._start()

    def _count(self, child: Child) -> None:
        """Add up what a driver told."""
        seen = self.outcome
        for message in child.all_told("locked"):
            seen.lock_waits += message["waited_s"] > 0.1
            seen.longest_lock_wait_s = max(seen.longest_lock_wait_s, message["waited_s"])
        for message in child.all_told("resuming"):
            seen.wrong += message["broken"]
        seen.leftovers += any("before the chain" in m["text"] for m in child.all_told("says"))
        revived = child.all_told("revived")
        seen.revived += len(revived)
        for message in [*child.all_told("begins"), *revived]:
            seen.again += message["again"]
            seen.recorded += message["recorded"]

    def _running(self) -> None:
        """Wait until a driver runs, starting others in place of those that leave."""
        for _ in range(5):
            if self._child.wait_for("running", PATIENCE_S):
                if self._child.code is None:
                    return
            elif self._child.code is None:
                raise RuntimeError(f"no driver runs after {PATIENCE_S} s; see {self._run}")
            self.outcome.gave_up += 1
            self._restart()
        raise RuntimeError(f"five drivers in a row gave up; see {self._run}")

    # --- kills

    def kill(self, turn: str) -> None:
        """Kill one process of a kind and see to it that a driver goes on."""
        if turn == "broker":
            self._kill_broker()
            return
        ends_run = turn in ("driver", "jvm")
        if ends_run and self._rng.random() < EARLY and not self._child.has_told("running"):
            self.outcome.early += 1
            time.sleep(self._rng.uniform(0.0, LATEST_S))
        else:
            self._running()
            time.sleep(self._rng.uniform(SOONEST_S, LATEST_S))
            self._wait_for_flow()
            if self._rng.random() < IN_A_COMMIT:
                self._wait_for_a_commit()
        victim = self._victim(turn)
        if victim is None:  # the driver left by itself meanwhile
            self._running()
            return
        self.outcome.mid_flow += self._is_flowing()
        _kill(victim)
        self.outcome.kills[turn] = self.outcome.kills.get(turn, 0) + 1
        if ends_run:
            self._restart()

    def _kill_broker(self) -> None:
        """Kill the broker while data flows, and start it again after a moment."""
        assert self._broker is not None
        self._running()
        self._wait_for_flow()
        self.outcome.mid_flow += self._is_flowing()
        self._broker.kill()
        time.sleep(self._rng.uniform(0.0, LATEST_S))
        self._broker.start()
        self.outcome.kills["broker"] = self.outcome.kills.get("broker", 0) + 1

    def _victim(self, turn: str) -> int | None:
        if turn == "driver":
            return self._child.pid
        deadline = time.monotonic() + PATIENCE_S
        while self._child.code is None and time.monotonic() < deadline:
            if found := self._child.processes(turn):
                return self._choose(found)
            time.sleep(0.02)
        return None

    def _wait_for_flow(self) -> None:
        deadline = time.monotonic() + FLOW_PATIENCE_S
        while not self._is_flowing() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _is_flowing(self) -> bool:
        """Whether rows wait for an operator, and operators have committed some just now."""
        since, waits, moves = time.time() - FLOWING_S, False, False
        for (_, reader), topic in self._inputs.items():
            end = topic.refresh()
            waits |= positions(topic.directory).get(reader, 0) < end
            moves |= topic.newest is not None and topic.newest.at > since
        return waits and moves

    def _wait_for_a_commit(self) -> None:
        committers = [process.pid for process in self._child.processes("committer")]
        deadline = time.monotonic() + SOON_S
        while not any(map(is_at_work, committers)) and time.monotonic() < deadline:
            time.sleep(0.001)

    def _choose(self, found: Sequence[Process]) -> int:
        """Prefer who is at work: most workers sleep most of the time."""
        at_work = [process for process in found if process.state != "S"]
        return self._rng.choice(at_work or found).pid

    # --- the end

    def finish(self, records: int) -> None:
        """Let everything be produced and processed, and compare."""
        while self._auditor.produced[self._source] < records:
            self._running()
            time.sleep(0.5)
        produced = self._files.stop() if self._files else 0
        aside = self._run / "finish.tmp"
        aside.write_text(str(produced))
        aside.rename(self._run / "finish")
        while self._wait_while_rows_are_read() != 0:
            if self._child.code is None:
                self.outcome.wrong.append("the last driver does not come to an end")
                os.kill(self._child.pid, signal.SIGKILL)
                self._child.wait(PATIENCE_S)
                break
            self.outcome.gave_up += 1
            self._restart()
        self._count(self._child)
        self._compare()

    def _wait_while_rows_are_read(self) -> int | None:
        """Wait for the end of the driver, on a slow machine for as long as it gets on."""
        read = self._count_read()
        while self._child.wait(PATIENCE_S) is None and (now := self._count_read()) != read:
            read = now
        return self._child.code

    def _count_read(self) -> int:
        """Return the sum of the offsets that operators have read up to."""
        return sum(
            positions(topic.directory).get(reader, 0) for (_, reader), topic in self._inputs.items()
        )

    def _compare(self) -> None:
        seen = self.outcome
        found = self._auditor.finish()
        seen.rows = {name: len(table) for name, table in found.items()}
        seen.produced = seen.rows[self._source]
        seen.wrong += self._auditor.problems
        if self._name in ORACLES:
            seen.wrong += problems(self._name, found, self._auditor.batches, self._auditor.reached)
        else:
            last = max(first for first, end in self._auditor.batches["fifties"] if end > first)
            seen.wrong += map(str, differences(found, last))
        if self._topics is not None:
            seen.wrong += compare_foreign(self._topics, found)
        seen.wrong += [f"left behind: {one.kind} {one.pid}" for one in self._left()]

    def _left(self) -> list[Process]:
        """Processes that are still there when everything should be gone."""
        deadline = time.monotonic() + 15
        while (left := marked(self._mark)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def clear_away(self) -> None:
        """End whatever is left, whatever happened."""
        for process in marked(self._mark):
            _kill(process.pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wreak(
    directory: Path,
    *,
    kills: int,
    seed: int,
    records: int = 0,
    turns: Sequence[str] = TURNS,
    pipeline: str = "chaos",
    show: bool = False,
    has_chains: bool = False,
    broker: KafkaBroker | None = None,
) -> Outcome:
    """Kill so many times, let it finish, and tell what happened."""
    began = time.monotonic()
    chaos = Chaos(directory, seed, pipeline, has_chains=has_chains, broker=broker)
    try:
        for number in range(kills):
            chaos.kill(turns[number % len(turns)])
            if show:
                done = f"kill {number + 1} of {kills}: {turns[number % len(turns)]}"
                print(f"{time.monotonic() - began:7.1f} s  {done}", file=sys.stderr, flush=True)
        chaos.finish(records)
    finally:
        chaos.clear_away()
    chaos.outcome.seconds = round(time.monotonic() - began, 1)
    return chaos.outcome


def table(outcome: Outcome) -> str:
    """Write an outcome for people."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.kills.items()))
    rows = [
        ("seed", outcome.seed),
        ("kills", f"{sum(outcome.kills.values())} ({kinds})"),
        ("", f"{outcome.mid_flow} while data flowed, {outcome.early} while starting"),
        ("starts again", f"{outcome.restarts} of the driver, {outcome.revived} of one operator"),
        ("drivers that gave up", outcome.gave_up),
        (
            "batches run again",
            f"{outcome.again}, {outcome.recorded} of them had a record already",
        ),
        (
            "waits for the lock",
            f"{outcome.lock_waits}, the longest {outcome.longest_lock_wait_s:.1f} s",
        ),
        (
            "starts with chains",
            f"{outcome.chained}, {outcome.leftovers} of them with rows from before",
        ),
        ("records produced", outcome.produced),
        ("rows compared", sum(outcome.rows.values())),
        ("seconds", outcome.seconds),
        ("verdict", outcome.verdict),
    ]
    lines = [f"{name:<22}{value}" for name, value in rows]
    return "\n".join([*lines, *(f"  {problem}" for problem in outcome.wrong)])


def main() -> int:
    """Wreak as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", choices=("chaos", *ORACLES), default="chaos")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--records", type=int, default=2000, help="produce at least so many")
    about = "on: most starts run neighbouring operators as one query, the others cut these chains"
    parser.add_argument("--chain", choices=("on", "off"), default="off", help=about)
    about = "keep the rows of topics in Kafka, and kill its broker, too"
    parser.add_argument("--kafka", action="store_true", help=about)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.chain == "on" and args.pipeline != "chaos":
        parser.error("--chain on goes with --pipeline chaos")
    seed = random.randrange(10**6) if args.seed is None else args.seed
    directory = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    print(f"seed {seed}, {directory}", file=sys.stderr, flush=True)
    with KafkaBroker(directory / "broker") if args.kafka else nullcontext() as broker:
        outcome = wreak(
            directory,
            kills=args.kills,
            seed=seed,
            records=args.records,
            turns=(*TURNS, "broker") if args.kafka else TURNS,
            pipeline=args.pipeline,
            show=True,
            has_chains=args.chain == "on",
            broker=broker,
        )
    if args.kills >= MANY_KILLS and outcome.mid_flow < MIN_MID_FLOW * args.kills:
        outcome.wrong.append(
            f"only {outcome.mid_flow} of {args.kills} kills came while data flowed"
        )
    if outcome.wrong:
        print(f"kept: {directory}", file=sys.stderr)
    else:
        shutil.rmtree(directory)
    told = {**asdict(outcome), "verdict": outcome.verdict}
    print(json.dumps(told) if args.json else table(outcome))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
