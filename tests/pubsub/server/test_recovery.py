"""Restarts: what was accepted is matched, in the state that subscribers were told."""

from tests.pubsub.server.conftest import Rig
from tests.pubsub.server.streams import Listener
from tests.pubsub.server.test_subscriptions import states, subscribe, wait_for_states

from penstock.pubsub.broker import Request, SubscribeRequest, UnsubscribeRequest
from penstock.pubsub.server.database import open_database
from penstock.pubsub.server.subscription_store import SubscriptionStore


def changes(rig: Rig) -> list[Request]:
    return [request for batch in rig.broker.submitted for request in batch]


def test_a_subscription_without_a_request_is_submitted_at_the_next_start(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price > 1", id="a").raise_for_status()
    rig.stop()
    # as a kill between the store and the engine leaves it
    connection = open_database(rig.directory)
    number = SubscriptionStore(connection).add(1, "b", b"price > 2", 10).number
    connection.close()
    client = rig.start().client()
    assert changes(rig)[-1] == SubscribeRequest(number=number, content=b"price > 2")
    wait_for_states(client, {"a": ("active", 0, None), "b": ("active", 0, None)})
    with Listener(client) as events:
        client.post("/publications", json={"price": 3})
        assert events.next()["subscriptions"] == ["a", "b"]
    rig.stop()
    before = len(changes(rig))
    rig.start()
    assert len(changes(rig)) == before


def test_requests_that_the_engine_has_but_not_confirmed_are_doubled_and_harmless(rig: Rig) -> None:
    client = rig.start().client()
    rig.broker.is_held = True
    subscribe(client, "price > 1", id="a").raise_for_status()
    rig.stop()
    client = rig.start().client()
    assert [type(each) for each in changes(rig)] == [SubscribeRequest, SubscribeRequest]
    client.post("/publications", json={"price": 3}).raise_for_status()
    client.delete("/subscriptions/a").raise_for_status()
    client.post("/publications", json={"price": 3}).raise_for_status()
    rig.broker.release()
    wait_for_states(client, {"a": ("removed", 0, 1)})
    assert [notice.publication for notice in rig.broker.read_notices(0)[0]] == [0]


def test_an_unconfirmed_removal_is_submitted_again_without_its_subscription(rig: Rig) -> None:
    client = rig.start().client()
    rig.broker.is_held = True
    subscribe(client, "price > 1", id="a").raise_for_status()
    client.delete("/subscriptions/a").raise_for_status()
    rig.stop()
    rig.start()
    # a repeated subscribe behind the removal would make it active again
    assert [type(each) for each in changes(rig)] == [
        *(SubscribeRequest, UnsubscribeRequest, UnsubscribeRequest),
    ]


def test_a_server_that_was_away_catches_up(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price > 1", id="a").raise_for_status()
    rig.broker.is_held = True
    for price in range(5):
        client.post("/publications", json={"price": price}).raise_for_status()
    rig.stop()
    rig.broker.release()
    client = rig.start().client()
    assert states(client) == {"a": ("active", 0, None)}
    assert client.get("/status").json()["notices"]["last_publication"] == 4
    with Listener(client, Last_Event_ID="2") as events:
        assert [events.next()["publication"] for _ in range(2)] == [3, 4]


def test_the_engine_may_stop_giving_news_for_a_while(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price > 1", id="a").raise_for_status()
    read_notices, calls = rig.broker.read_notices, []

    def fail(position: int) -> None:
        calls.append(position)
        raise OSError("disk gone")

    rig.broker.read_notices = fail  # type: ignore[method-assign, assignment]
    while not client.get("/status").json()["problem"]:
        pass
    assert "disk gone" in client.get("/status").json()["problem"]
    rig.broker.read_notices = read_notices  # type: ignore[method-assign]
    with Listener(client) as events:
        client.post("/publications", json={"price": 3}).raise_for_status()
        assert events.next()["publication"] == 0
    assert client.get("/status").json()["problem"] == ""
