"""Pipelines with rows in Kafka, while workers, the broker and the driver are killed."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.commands.test_run import MARK, Command, nothing_left_of, processes_of, started
from tests.kafka.test_pipeline_kills import contains, until, workers_of
from tests.tools import chaos
from tests.tools.kafka_broker import PASSWORD, USER, KafkaBroker
from tests.tools.kafka_rows import read_rows

from penstock.runs.topic_inspection import read_rows as read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
WITHIN_S = 900.0


def kill_some(pids: list[int], choice: random.Random) -> int:
    """Kill one of three processes; return how many."""
    chosen = choice.sample(pids, k=max(1, len(pids) // 3)) if pids else []
    for pid in chosen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(chosen)


def published(run: Path, topic: str) -> int:
    """Return the rows that the commits of a topic name."""
    commits = sorted((run / "topics" / topic / "commits").glob("[0-9]*.json"))
    if not commits:
        return 0
    commit = json.loads(commits[-1].read_bytes())
    return int(commit["first"] + commit["rows"])


def test_images(broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image pipeline, unchanged: each picture once in each topic, for any reader."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    properties, prefix = tmp_path / "client.properties", f"images-{uuid.uuid4().hex[:8]}"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={USER}\nsasl.password=${{env:KAFKA_PASSWORD}}\n"
    )
    run, choice = tmp_path / "run", random.Random(3)
    options = [
        *("images", "--workload", "constant(rate=8)", "--minutes", "1", "--policy", "ds2"),
        *("--interval", "2", "--set", "service_s=0.05", "--out", str(run)),
        *("--topics", f"kafka://127.0.0.1:{broker.login_port}/{prefix}"),
        *("--topics-properties", str(properties)),
    ]

    def until_more(command: Command, rows: int = 40) -> None:
        wanted = published(run, "labels") + rows
        until(command, lambda: published(run, "labels") >= wanted)

    with started(run, *options) as command:
        until_more(command)
        assert kill_some(workers_of(run), choice)
        until_more(command)
        broker.kill()
        time.sleep(2)
        broker.start()
        until_more(command)
        command.process.kill()  # the driver
        command.process.wait(30)
        assert nothing_left_of(run)
    with started(run, "--resume", str(run)) as command:
        until(command, lambda: command.process.poll() is not None or contains_result(run))
        code, result = command.ends()
    assert code == 0, command.err
    records = result["records"]
    offered = records["offered"]
    assert offered == records["complete"] > 400  # the arrivals are random
    assert (records["lost"], records["doubled"], records["strange"]) == (0, 0, 0)
    rows = read_topic(run, "labels").drop_columns("_event").to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(offered))
    foreign = read_rows(broker.address, f"{prefix}.labels")
    assert foreign == Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)
    shown = [path for path in run.rglob("*") if path.is_file() and contains(path, PASSWORD)]
    assert shown == [] and PASSWORD not in command.err


def contains_result(run: Path) -> bool:
    """Whether a run has ended."""
    return (run / "result.json").is_file()


@pytest.mark.parametrize(("query", "events"), [("q1", 100_000), ("q11", 150_000)])
def test_nexmark(broker: KafkaBroker, tmp_path: Path, query: str, events: int) -> None:
    """Rows are those of DuckDB, although replicas change, and workers and the broker are killed."""
    place, choice = tmp_path / "verify", random.Random(5)
    command = [
        *(sys.executable, "-m", "penstock", "nexmark", "verify", "--query", query, "--rescale"),
        *("--events", str(events), "--topics", broker.url("verify"), "--json"),
    ]
    process = subprocess.Popen(
        command, env={**os.environ, MARK: str(place)}, stdout=subprocess.PIPE, text=True
    )
    kills: list[str] = []
    over = threading.Event()

    def kill_now_and_then() -> None:
        turns: list[tuple[str, Callable[[], object]]] = [
            ("worker", lambda: kill_some(workers_of(place), choice)),
            ("broker", lambda: (broker.kill(), time.sleep(1), broker.start())),
        ]
        while len(workers_of(place)) < 4 and not over.wait(0.5):
            pass
        over.wait(6)
        for number in range(5):
            if over.wait(4):
                return
            name, kill = turns[number % 2]
            if kill():
                kills.append(name)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        out, _ = process.communicate(timeout=WITHIN_S)
    finally:
        over.set()
        killer.join()
        for pid in processes_of(place):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    result = json.loads(out)
    print(query, kills, result)
    assert process.returncode == 0, result
    assert {"worker", "broker"} <= set(kills)


def test_state_and_all_kinds(broker: KafkaBroker, tmp_path: Path) -> None:
    """Operators of all kinds, with driver, JVM, workers and broker killed, against DuckDB."""
    turns = ("worker", "driver", "broker", "jvm", "committer")
    outcome = chaos.wreak(
        tmp_path, kills=len(turns), seed=int(time.time()), records=300, turns=turns, broker=broker
    )
    print(chaos.table(outcome))
    assert outcome.wrong == []
    assert outcome.kills.keys() >= {"driver", "broker", "jvm"}
