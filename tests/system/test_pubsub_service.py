"""The service on Spark: events while slices migrate, and after the server and Spark were killed."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import make_token
from tests.pubsub.server.serve_process import ServeProcess
from tests.pubsub.server.test_kill import SPACE, Publisher

from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.run_layout import RunLayout
from penstock.pubsub import Client

pytestmark = pytest.mark.spark
#: No more than this is waited for anything.
PATIENCE_S = 240.0
LAST = 10**9


class Follower(threading.Thread):
    """Collects events until the last one."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self._subscription = client.subscribe("price >= 0", id="all")
        self.prices: list[int] = []

    def run(self) -> None:
        """Follow the subscription, through restarts too."""
        for event in self._subscription:
            self.prices.append(event.content["price"])
            if self.prices[-1] == LAST:
                return


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def placement(client: Client) -> list[list[int]]:
    """Return the slices of each replica of the matcher."""
    operators = client.status()["engine"]["operators"]
    return next((each["slices_by_replica"] for each in operators if each["name"] == "match"), [])


def move(directory: Path, replicas: int, pins: dict[int, int]) -> None:
    """Let slices of the matcher migrate at the next batch."""
    layout = RunLayout(directory / "run")
    write_command(layout, "match", Command(replicas=replicas, pins=pins))


def test_migrations_and_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    directory = tmp_path / "service"
    options = ("--slices", "1,4,1", "--batch", "0.5", "--policy", "static")
    with ServeProcess(directory, tmp_path / "space.toml", *options) as server:
        publisher = Publisher(server.url, make_token(directory, "feed"))
        with Client(server.url, make_token(directory, "alice")) as client:
            follower = Follower(client)
            follower.start()
            publisher.start()
            wait_until(lambda: len(follower.prices) > 5, "no events")

            move(directory, 2, {0: 1, 2: 1})
            wait_until(lambda: len(placement(client)) == 2, "no migration")
            during = len(follower.prices)
            wait_until(lambda: len(follower.prices) > during + 5, "no events after a migration")
            move(directory, 1, {})
            wait_until(lambda: len(placement(client)) == 1, "no migration back")

            server.kill()
            server.start(PATIENCE_S)
            before = len(follower.prices)
            wait_until(lambda: len(follower.prices) > before + 5, "no events after a kill")
            publisher.is_ending = True
            publisher.join(20)
            client.publish({"price": LAST})
            follower.join(PATIENCE_S)
            assert not follower.is_alive()
        assert server.stop() == 0
    found = [price for price in follower.prices if price != LAST]
    assert len(found) == len(set(found))
    assert set(publisher.acknowledged) <= set(found)
    assert set(found) <= set(publisher.acknowledged) | publisher.unknown
