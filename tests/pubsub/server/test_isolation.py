"""Random changes and publications of several accounts: each gets exactly its own."""

import random

from tests.pubsub.server.conftest import Rig
from tests.pubsub.server.streams import Listener
from tests.pubsub.server.test_subscriptions import subscribe

from penstock.pubsub.language.evaluation import is_match
from penstock.pubsub.language.parser import parse_predicate

STEPS = 150
ACCOUNTS = ("alice", "bob", "carol")
#: The same ids for everybody, and predicates that overlap.
IDS = ("a", "b", "c")


def test_each_account_gets_the_events_of_its_own_subscriptions(rig: Rig) -> None:
    rig.start(requests_per_s=10_000)
    clients = {name: rig.client(name) for name in ACCOUNTS}
    live: dict[tuple[str, str], str] = {}
    expected: dict[str, list[tuple[int, set[str]]]] = {name: [] for name in ACCOUNTS}
    chance, publications = random.Random(11), 0
    for _ in range(STEPS):
        name, id = chance.choice(ACCOUNTS), chance.choice(IDS)
        action = chance.choice(("subscribe", "unsubscribe", "publish", "publish"))
        if action == "subscribe":
            low = chance.randrange(10)
            predicate = f"price BETWEEN {low} AND {low + chance.randrange(6)}"
            status = subscribe(clients[name], predicate, id=id).status_code
            assert status == (409 if (name, id) in live else 201)
            live.setdefault((name, id), predicate)
        elif action == "unsubscribe":
            status = clients[name].delete(f"/subscriptions/{id}").status_code
            assert status == (202 if live.pop((name, id), None) else 404)
        else:
            event = {"price": chance.randrange(15)}
            assert clients[name].post("/publications", json=event).status_code == 202
            for account in ACCOUNTS:
                ids = {
                    key[1]
                    for key, text in live.items()
                    if key[0] == account and is_match(parse_predicate(text), event)
                }
                if ids:
                    expected[account].append((publications, ids))
            publications += 1
    assert min(map(len, expected.values())) > 5
    for name, client in clients.items():
        with Listener(client, Last_Event_ID="-1") as events:
            found = [events.next() for _ in expected[name]]
            assert events.is_silent()
        assert [(e["publication"], set(e["subscriptions"])) for e in found] == expected[name]
