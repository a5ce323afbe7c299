"""The service on Spark: events while slices migrate, after kills and after gentle stops."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    def wait_for_more(self) -> None:
        """Wait until some more events have come."""
        before = len(self.prices)
        wait_until(lambda: len(self.prices) > before + 5, "no more events")


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


@contextmanager
def follow_service(directory: Path) -> Iterator[tuple[ServeProcess, Client, Follower]]:
    """Serve on Spark, publish all the time, and compare all events at the end."""
    directory.mkdir()
    (directory / "space.toml").write_text(SPACE)
    service = directory / "service"
    options = ("--slices", "1,4,1", "--batch", "0.5", "--policy", "static")
    with ServeProcess(service, directory / "space.toml", *options) as server:
        publisher = Publisher(server.url, make_token(service, "feed"))
        with Client(server.url, make_token(service, "alice")) as client:
            follower = Follower(client)
            follower.start()
            publisher.start()
            follower.wait_for_more()
            yield server, client, follower
            publisher.is_ending = True
            publisher.join(20)
            client.publish({"price": LAST})
            follower.join(PATIENCE_S)
            assert not follower.is_alive()
        assert server.stop() == 0
    prices = [price for price in follower.prices if price != LAST]
    assert len(prices) == len(set(prices))
    assert set(publisher.acknowledged) <= set(prices)
    assert set(prices) <= set(publisher.acknowledged) | publisher.unknown


def test_migrations_and_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    with follow_service(tmp_path / "room") as (server, client, follower):
        move(tmp_path / "room" / "service", 2, {0: 1, 2: 1})
        wait_until(lambda: len(placement(client)) == 2, "no migration")
        follower.wait_for_more()
        move(tmp_path / "room" / "service", 1, {})
        wait_until(lambda: len(placement(client)) == 1, "no migration back")

        server.kill()
        server.start(PATIENCE_S)
        follower.wait_for_more()


@pytest.mark.long
def test_gentle_stops_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    with follow_service(tmp_path / "room") as (server, client, follower):
        for _ in range(2):
            assert server.stop() == 0
            server.start(PATIENCE_S)
            follower.wait_for_more()
        (state,) = client.subscriptions()
        assert (state["state"], state["active_from"]) == ("active", 0)
