"""The client: plain and encrypted, against a server with a broker by brute force."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import Rig, make_token
from tests.pubsub.server.test_publications import ENCRYPTED

from penstock.errors import InputError
from penstock.pubsub import Client, MissedEventsError, ServiceError
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.language.predicate_error import PredicateError
from penstock.pubsub.server.credentials import Role
from penstock.pubsub.spaces.space_key import make_space_key, write_space_key


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with ExitStack() as stack:
        made = Rig(stack, tmp_path / "service")
        yield made
        made.stop()


def connect(rig: Rig, name: str = "alice", **options: object) -> Client:
    return Client(rig.url, make_token(rig.directory, name), **options)  # type: ignore[arg-type]


EVENTS = [{"price": price, "symbol": symbol} for price in range(20) for symbol in ("A", "B")]


def test_events_are_those_that_match(rig: Rig) -> None:
    rig.start()
    with connect(rig) as client:
        subscription = client.subscribe("price > 5 AND symbol = 'A'")
        assert client.publish_many(EVENTS).accepted == 40
        client.publish({"price": 99, "symbol": "A"})
        found = [event.content for event in islice(subscription, 15)]
        predicate = parse_predicate("price > 5 AND symbol = 'A'")
        expected = [event for event in EVENTS if is_match(predicate, event)]
        assert found == [*expected, {"price": 99, "symbol": "A"}]
        assert client.status()["account"]["name"] == "alice"
        client.unsubscribe(subscription.id)
        assert client.subscriptions()[0]["state"] in ("removing", "removed")


def test_events_of_an_encrypted_space_are_decrypted(rig: Rig, tmp_path: Path) -> None:
    rig.start(ENCRYPTED)
    write_space_key(tmp_path / "key", make_space_key(ENCRYPTED))
    with connect(rig, key=tmp_path / "key") as client:
        subscription = client.subscribe("price BETWEEN 5 AND 7 AND symbol = 'A'", id="a")
        assert client.publish_many(EVENTS).accepted == 40
        found = [event.content for event in islice(subscription, 3)]
        assert found == [{"price": price, "symbol": "A"} for price in (5, 6, 7)]
        stored = b"".join(
            getattr(request, "content", b"") + getattr(request, "payload", b"")
            for batch in rig.broker.submitted
            for request in batch
        )
        assert b"price" not in stored and b"symbol" not in stored


def test_false_positives_are_dropped(rig: Rig, tmp_path: Path) -> None:
    rig.start(ENCRYPTED)
    key = make_space_key(ENCRYPTED)
    with connect(rig, key=key) as client:
        subscription = client.subscribe("symbol = 'A'")
        right = client.content.make_publication({"price": 1, "symbol": "A"})
        other = client.content.make_publication({"price": 1, "symbol": "B"})
        # as two texts with the same hash: the vector of A, the payload of B
        client.request("POST", "/publications", json={**right, "payload": other["payload"]})
        client.publish({"price": 2, "symbol": "A"})
        (event,) = islice(subscription, 1)
        assert event.content == {"price": 2, "symbol": "A"}
        assert (event.publication, subscription.false_positives) == (1, 1)


def test_an_encrypted_space_needs_its_key(rig: Rig) -> None:
    rig.start(ENCRYPTED)
    with connect(rig) as client, pytest.raises(InputError, match="a key file is needed"):
        client.publish({"price": 3})
    with connect(rig, key=make_space_key(ENCRYPTED)) as client:
        with pytest.raises(PredicateError, match="not declared"):
            client.subscribe("prise > 3")
        with pytest.raises(InputError, match="must be from 0 to 100"):
            client.publish({"price": 300, "symbol": "A"})
    assert rig.broker.submitted == []


def test_a_refusal_has_its_place(rig: Rig) -> None:
    rig.start()
    with connect(rig) as client:
        with pytest.raises(ServiceError, match="predicate, character 8: expected a number") as info:
            client.subscribe("price >> 3")
        assert info.value.status == 400 and info.value.body["character"] == 8
        client.subscribe("price > 3", id="a")
        with pytest.raises(ServiceError, match="there is a subscription 'a'"):
            client.subscribe("price > 3", id="a")
        result = client.publish_many([{"price": 1}, {"price": 1e999}, {"price": 2}])
        assert result.accepted == 2 and list(result.refused) == [1]
    with Client(rig.url, "pst_00_x") as client, pytest.raises(ServiceError, match="not valid"):
        client.publish({"price": 1})
    nowhere = Client("http://127.0.0.1:1", "t")
    with nowhere, pytest.raises(ServiceError, match="cannot be reached"):
        nowhere.publish({"price": 1})
    with pytest.raises(InputError, match="cannot be used"):
        Client("http://x:abc", "t")


def test_an_iterator_resumes_after_a_restart(rig: Rig) -> None:
    rig.start()
    port = int(rig.url.rpartition(":")[2])
    with connect(rig) as client:
        subscription = client.subscribe("price >= 0")
        found: list[int] = []

        def collect() -> None:
            for event in subscription:
                found.append(event.content["price"])
                if len(found) == 30:
                    return

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        for part in range(3):
            publisher = connect(rig)
            publisher.publish_many([{"price": 10 * part + i} for i in range(10)])
            publisher.close()
            rig.stop()
            rig.start(port=port)
        thread.join(20)
        assert found == list(range(30))


def test_missed_events_are_told(rig: Rig) -> None:
    rig.start()
    with connect(rig) as client:
        subscription = client.subscribe("price >= 0", id="a")
        client.publish_many([{"price": price} for price in range(10)])
        assert [event.publication for event in islice(subscription, 10)] == list(range(10))
        rig.broker.removed_up_to = 8
        with pytest.raises(MissedEventsError, match="were removed"):
            next(iter(client.resume("a", "price >= 0", after=3)))
        assert next(iter(client.resume("a", "price >= 0", after=8))).publication == 9
        later = client.resume("a", "price >= 0")
        client.publish({"price": 77})
        assert next(iter(later)).content == {"price": 77}


def test_a_closed_iterator_ends(rig: Rig) -> None:
    rig.start()
    with connect(rig) as client:
        subscription = client.subscribe("price >= 0")
        client.publish_many([{"price": price} for price in range(5)])
        found = []
        for event in subscription:
            found.append(event.publication)
            if len(found) == 2:
                subscription.close()
        assert found == [0, 1]


def test_a_publisher_cannot_subscribe(rig: Rig) -> None:
    rig.start()
    token = make_token(rig.directory, "feed", Role.PUBLISHER)
    with Client(rig.url, token) as client, pytest.raises(ServiceError) as info:
        client.subscribe("price > 3")
    assert info.value.status == 403


@pytest.mark.slow
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_the_example_runs(rig: Rig, tmp_path: Path, is_encrypted: bool) -> None:
    rig.start(*([ENCRYPTED] if is_encrypted else []))
    key = tmp_path / "key"
    write_space_key(key, make_space_key(ENCRYPTED))
    settings = {
        "PENSTOCK_PUBSUB_URL": rig.url,
        "PENSTOCK_PUBSUB_TOKEN": make_token(rig.directory, "alice"),
        **({"PENSTOCK_PUBSUB_KEY": str(key)} if is_encrypted else {}),
    }
    example = Path(__file__).parents[2] / "examples" / "pubsub_client.py"
    done = subprocess.run(
        [sys.executable, str(example)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [f"{price} {{'symbol': 'ACME', 'price': {price}}}" for price in range(10)]
    assert done.stdout.splitlines() == lines
