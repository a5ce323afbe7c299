"""A server that is killed or stopped: subscribers reconnect, miss nothing, get nothing twice."""

import random
import threading
import time
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import make_token
from tests.pubsub.server.serve_process import ServeProcess

from penstock.pubsub import Client, ServiceError

SPACE = 'format = 1\nscheme = "plain"\n[attributes.price]\n'
KILLS = 3


class Publisher(threading.Thread):
    """Publishes one number after the other, and remembers what was acknowledged."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(daemon=True)
        self._url, self._token = url, token
        self.acknowledged: list[int] = []
        self.unknown: set[int] = set()
        self.is_ending = False

    def run(self) -> None:
        """Publish until told to end; never repeat an event whose fate is unknown."""
        number = 0
        with Client(self._url, self._token, timeout_s=5) as client:
            while not self.is_ending:
                try:
                    client.publish({"price": number})
                    self.acknowledged.append(number)
                except ServiceError:
                    self.unknown.add(number)
                    time.sleep(0.1)
                number += 1


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    directory = tmp_path / "service"
    chance = random.Random(7)
    with ServeProcess(directory, tmp_path / "space.toml", "--local") as server:
        token = make_token(directory, "alice")
        publisher = Publisher(server.url, make_token(directory, "feed"))
        found: list[int] = []
        with Client(server.url, token) as client:
            subscription = client.subscribe("price >= 0", id="all")
            reader = threading.Thread(
                target=lambda: found.extend(_read(subscription, publisher)), daemon=True
            )
            reader.start()
            publisher.start()
            for _ in range(KILLS):
                time.sleep(chance.uniform(0.3, 1.0))
                server.kill()
                server.start()
            time.sleep(0.5)
            publisher.is_ending = True
            publisher.join(20)
            client.publish({"price": 10**9})
            reader.join(30)
            assert not reader.is_alive()
            (state,) = client.subscriptions()
            assert (state["state"], state["active_from"]) == ("active", 0)
        assert server.stop() == 0
    assert found == sorted(set(found))
    assert set(publisher.acknowledged) <= set(found)
    assert set(found) <= set(publisher.acknowledged) | publisher.unknown
    assert len(publisher.acknowledged) >= 2 * KILLS


def _read(subscription: object, publisher: Publisher) -> list[int]:
    found: list[int] = []
    for event in subscription:  # type: ignore[attr-defined]
        if event.content["price"] == 10**9:
            break
        found.append(event.content["price"])
    return found


@pytest.mark.slow
def test_a_stream_continues_after_a_gentle_stop(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    directory = tmp_path / "service"
    with ServeProcess(directory, tmp_path / "space.toml", "--local") as server:
        token = make_token(directory, "alice")
        with Client(server.url, token) as client:
            subscription = client.subscribe("price > 3")
            client.publish({"price": 4})
            events = iter(subscription)
            assert next(events).publication == 0
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 20  # it would wait for ever for open streams
            with pytest.raises(ServiceError, match="cannot be reached"):
                client.publish({"price": 5})
            server.start()
            client.publish({"price": 6})
            event = next(events)
            assert (event.publication, event.content) == (1, {"price": 6})
