"""A whole service without Spark, with the real matcher, in plain and encrypted spaces."""

import random
from itertools import islice
from pathlib import Path

import pytest
from tests.pubsub.server.conftest import PLAIN, make_token
from tests.pubsub.server.test_publications import ENCRYPTED

from penstock.pubsub import Client
from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate
from penstock.pubsub.server.http_server import ServerThread
from penstock.pubsub.server.local_service import open_local_server
from penstock.pubsub.spaces.space_key import make_space_key

PREDICATES = (
    "price > 50 AND symbol = 'A'",
    "price BETWEEN 20 AND 30 OR price >= 90",
    "symbol IN ('B', 'C') AND price < 40",
)


@pytest.mark.parametrize("space", [PLAIN, ENCRYPTED], ids=["plain", "encrypted"])
def test_every_subscriber_gets_what_brute_force_says(space: object, tmp_path: Path) -> None:
    chance = random.Random(3)
    events = [{"price": chance.randrange(101), "symbol": chance.choice("ABC")} for _ in range(200)]
    expected = {
        text: [event for event in events if is_match(parse_predicate(text), event)]
        for text in PREDICATES
    }
    key = make_space_key(ENCRYPTED)
    for start in range(2):  # the second time the server continues what it has
        with (
            open_local_server(space, tmp_path) as server,  # type: ignore[arg-type]
            ServerThread(server),
            Client(server.url, make_token(tmp_path, "alice"), key) as client,
        ):
            if start == 0:
                subscriptions = {text: client.subscribe(text) for text in PREDICATES}
                assert client.publish_many(events).accepted == len(events)
            for text, subscription in subscriptions.items():
                again = client.resume(subscription.id, text, after=-1)
                found = [event.content for event in islice(again, len(expected[text]))]
                assert found == expected[text]
            states = {each["state"] for each in client.subscriptions()}
            assert states == {"active"}
            assert client.status()["engine"]["kind"] == "local"
