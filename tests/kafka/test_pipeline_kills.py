"""A pipeline between two topics while broker, tasks and driver are killed: each row once."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.commands.test_run import Command, nothing_left_of, processes_of, started
from tests.kafka.topics import add_partitions, differences, make_topic, produce, read_topic
from tests.tools.kafka_broker import PASSWORD, USER, KafkaBroker

from penstock.cli.main import main

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
PIPELINE = Path(__file__).with_name("kafka_pipeline.py")
#: Rows that are produced at once, and seconds between them.
STEP, EVERY_S = 400, 0.5
WITHIN_S = 400.0


class Shop:
    """Produces numbered orders to the input until it is stopped."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker, self._stop = broker, threading.Event()
        self.ids: list[int] = []
        self._pause = threading.Lock()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Produce nothing meanwhile."""
        with self._pause:
            yield

    def stop(self) -> list[int]:
        """Stop and return the numbers of all orders."""
        self._stop.set()
        self._thread.join()
        return self.ids

    def _produce(self) -> None:
        while not self._stop.wait(EVERY_S):
            with self._pause:
                new = range(len(self.ids), len(self.ids) + STEP)
                rows = ({"id": n, "amount": n / 4, "part": n % 3} for n in new)
                produce(self._broker, "kills-in", rows)
                self.ids += new


def workers_of(run: Path) -> list[int]:
    """Python workers of a run: children of the daemon."""
    found = []
    for pid in processes_of(run):
        with suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            # the JVM has the name in a setting
            name = "\0penstock.engines.spark.cluster.daemon\0"
            if all(name in read_command_line(each) for each in (pid, parent)):
                found.append(pid)
    return found


def read_command_line(pid: int | str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def contains(path: Path, text: str) -> bool:
    return text.encode() in path.read_bytes()


def until(command: Command, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert command.process.poll() is None, command.err
        assert time.monotonic() < deadline, command.err
        time.sleep(0.3)


def test_each_row_once_whatever_is_killed(
    broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, name in (("KAFKA_IN", "kills-in"), ("KAFKA_OUT", "kills-out")):
        make_topic(broker, name, 2)
        monkeypatch.setenv(variable, f"kafka://127.0.0.1:{broker.login_port}/{name}")
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("KAFKA_PROPERTIES", str(tmp_path / "client.properties"))
    (tmp_path / "client.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={USER}\nsasl.password={PASSWORD}\n"
    )
    run, choice = tmp_path / "run", random.Random(1)
    options = [str(PIPELINE), "--policy", "static", "--interval", "2", "--out", str(run)]

    def written() -> int:
        return len(read_topic(broker, "kills-out"))

    def until_more(command: Command, rows: int = STEP) -> None:
        wanted = written() + rows
        until(command, lambda: written() >= wanted)

    shop = Shop(broker)
    with started(run, *options) as command:
        until_more(command)
        for _ in range(2):  # tasks
            for pid in choice.sample(pids := workers_of(run), k=max(1, len(pids) // 3)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            until_more(command)
        with shop.paused():  # the broker
            broker.kill()
            time.sleep(3)
            broker.start()
        until_more(command)
        add_partitions(broker, "kills-in", 4)
        until_more(command)
        command.process.kill()  # the driver
        command.process.wait(30)
    assert nothing_left_of(run)
    ids: list[int] = []
    with started(run, *options) as command:
        until_more(command)
        ids = shop.stop()
        until(command, lambda: written() >= len(ids) // 2)
        time.sleep(3)  # rows that are too many would come now
        assert main(["stop", str(run), "--timeout", "120"]) == 0
        assert command.ends()[0] == 143, command.err
    shown = [path for path in run.rglob("*") if path.is_file() and contains(path, PASSWORD)]
    assert shown == [] and PASSWORD not in command.err
    expected = [(number, number / 4, number % 3) for number in ids if number % 2 == 0]
    found = [(row["id"], row["amount"], row["part"]) for row in read_topic(broker, "kills-out")]
    assert differences(expected, found) == ({}, {})
    seen = read_topic(broker, "kills-out", "read_uncommitted")
    print(f"{len(ids)} rows in, {len(found)} out, {len(seen) - len(found)} of aborted attempts")
