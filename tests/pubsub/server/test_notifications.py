"""GET /notifications: order, resume, owners, slow readers, the end of the server."""

import json
import socket
import time
from urllib.parse import urlparse

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pubsub.server.conftest import Rig, make_token
from tests.pubsub.server.streams import Listener
from tests.pubsub.server.test_subscriptions import subscribe

from penstock.pubsub.broker import Notice, NoticesRemovedError
from penstock.pubsub.server.notice_dispatch import NoticeFeed, NoticeQueue, Owners


def test_events_arrive_in_order_with_the_ids_that_match(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price > 3", id="big").raise_for_status()
    subscribe(client, "price < 5", id="small").raise_for_status()
    with Listener(client) as events:
        for price in range(3, 7):
            client.post("/publications", json={"price": price}).raise_for_status()
        found = [events.next() for _ in range(4)]
    assert found == [
        {"publication": 0, "subscriptions": ["small"], "event": {"price": 3}},
        {"publication": 1, "subscriptions": ["big", "small"], "event": {"price": 4}},
        {"publication": 2, "subscriptions": ["big"], "event": {"price": 5}},
        {"publication": 3, "subscriptions": ["big"], "event": {"price": 6}},
    ]


def test_nobody_reads_the_notifications_of_another(rig: Rig) -> None:
    alice, bob = rig.start().client("alice"), rig.client("bob")
    subscribe(alice, "price > 3", id="x").raise_for_status()
    subscribe(bob, "price > 100", id="x").raise_for_status()
    with Listener(bob) as of_bob, Listener(alice) as of_alice:
        alice.post("/publications", json={"price": 4})
        alice.post("/publications", json={"price": 101})
        assert [of_alice.next()["publication"] for _ in range(2)] == [0, 1]
        assert of_bob.next() == {"publication": 1, "subscriptions": ["x"], "event": {"price": 101}}
    with Listener(bob, Last_Event_ID="-1") as again:
        assert again.next()["publication"] == 1
        assert again.is_silent()


def test_a_stream_resumes_behind_the_last_event(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price >= 0").raise_for_status()
    for price in range(40):
        client.post("/publications", json={"price": price})
    with Listener(client, Last_Event_ID="9") as events:
        assert [events.next()["publication"] for _ in range(30)] == list(range(10, 40))
        client.post("/publications", json={"price": 1})
        assert events.next()["publication"] == 40
    with Listener(client, "/notifications?after=39") as events:
        assert events.next()["publication"] == 40
    with Listener(client) as events:  # without an id: only new ones
        assert events.is_silent()


def test_a_stream_can_be_limited_to_some_subscriptions(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price > 3", id="a")
    subscribe(client, "price < 3", id="b")
    for price in (1, 5, 2, 6):
        client.post("/publications", json={"price": price})
    with Listener(client, "/notifications?subscription=b&after=-1") as events:
        assert [events.next()["publication"] for _ in range(2)] == [0, 2]
        client.post("/publications", json={"price": 7})
        client.post("/publications", json={"price": 0})
        assert events.next()["publication"] == 5


def test_events_that_were_removed_are_gone(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price >= 0")
    for price in range(5):
        client.post("/publications", json={"price": price})
    with Listener(client, Last_Event_ID="3") as events:
        events.next()
    rig.broker.removed_up_to = 3
    answer = client.get("/notifications", headers={"Last-Event-ID": "1"})
    assert answer.status_code == 410
    assert answer.json()["after"] == 4 and "continue with after=4" in answer.json()["hint"]


def test_a_wrong_last_event_is_refused(rig: Rig) -> None:
    client = rig.start().client()
    for text in ("x", "-2", "1.5", "9" * 30, "7"):
        answer = client.get("/notifications", headers={"Last-Event-ID": text})
        assert (answer.status_code, answer.json()["place"]) == (400, "Last-Event-ID")


def test_an_account_has_a_limit_of_streams(rig: Rig) -> None:
    client = rig.start(max_streams=2).client()
    with Listener(client), Listener(client):
        answer = client.get("/notifications")
        assert answer.status_code == 429 and "2 open streams" in answer.json()["error"]
        assert rig.client("bob").head("/notifications").status_code == 200
        assert client.get("/status").json()["streams"] == 2


def test_a_stream_that_was_closed_counts_no_more(rig: Rig) -> None:
    rig.start(max_streams=1)
    token = make_token(rig.directory, "alice")
    for _ in range(3):
        client = rig.client_with(token)
        deadline = time.monotonic() + 10
        while True:
            with client.stream("GET", "/notifications") as answer:
                if answer.status_code == 200:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.close()


def open_raw_stream(rig: Rig, after: int) -> socket.socket:
    """Ask for notifications over a socket that hardly buffers anything."""
    address = urlparse(rig.url)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(20)
    raw.connect((address.hostname, address.port))
    token = make_token(rig.directory, "alice")
    head = f"GET /notifications?after={after} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}"
    raw.sendall(f"{head}\r\n\r\n".encode())
    return raw


def read_all(raw: socket.socket) -> str:
    data = b""
    while part := raw.recv(1 << 16):
        data += part
        if data.endswith(b"0\r\n\r\n"):
            break
    return data.decode()


def test_a_slow_subscriber_is_told_to_resume_and_loses_nothing(rig: Rig) -> None:
    client = rig.start(max_queue=20).client()
    subscribe(client, "price >= 0", id="all").raise_for_status()
    raw = open_raw_stream(rig, -1)
    assert raw.recv(100).startswith(b"HTTP/1.1 200")
    note = "x" * 20_000
    lines = "".join(json.dumps({"price": i, "note": note}) + "\n" for i in range(600))
    headers = {"Content-Type": "application/x-ndjson"}
    client.post("/publications", content=lines, headers=headers).raise_for_status()
    text = read_all(raw)
    raw.close()
    last = [line for line in text.splitlines() if line.startswith("data: ")][-1]
    end = json.loads(last.removeprefix("data: "))
    assert end["reason"] == "slow"
    assert "event: resume" in text
    with Listener(client, Last_Event_ID=str(end["after"])) as events:
        rest = [events.next()["publication"] for _ in range(599 - end["after"])]
    ids = [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")]
    numbers = list(dict.fromkeys(number for number in ids if number >= 0))
    assert numbers + rest == list(range(600))


def test_a_subscriber_that_takes_nothing_is_cut_off(rig: Rig) -> None:
    client = rig.start(max_queue=5, send_timeout_s=0.3, max_streams=1).client()
    subscribe(client, "price >= 0").raise_for_status()
    raw = open_raw_stream(rig, -1)
    assert raw.recv(100).startswith(b"HTTP/1.1 200")
    for _ in range(40):
        client.post("/publications", json={"price": 1, "note": "x" * 200_000})
    deadline = time.monotonic() + 10
    while client.get("/status").json()["streams"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    raw.close()


def test_streams_end_with_the_server_and_resume_at_the_next(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price >= 0").raise_for_status()
    with Listener(client) as events:
        client.post("/publications", json={"price": 1})
        events.next()
        began = time.monotonic()
        rig.stop()
        last = events.take()
        assert last is not None and last.type == "resume"
        assert json.loads(last.data) == {"reason": "shutdown", "after": 0}
        assert events.take() is None
        assert time.monotonic() - began < 20  # streams would stay open for ever
    client = rig.start().client()
    client.post("/publications", json={"price": 2})
    with Listener(client, Last_Event_ID=last.id) as events:
        assert events.next()["publication"] == 1


@settings(max_examples=60)
@given(
    notices=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=30),
    after=st.integers(-1, 30),
    max_size=st.integers(1, 8),
    takes=st.lists(st.booleans(), max_size=30),
)
def test_a_queue_gives_a_prefix_of_what_belongs_to_its_account(
    notices: list[list[int]], after: int, max_size: int, takes: list[bool]
) -> None:
    import asyncio  # noqa: PLC0415

    async def follow() -> None:
        owners = Owners({number: (number % 2, f"s{number}") for number in range(5)})
        feed, queue = NoticeFeed(owners, 0), NoticeQueue(1, after, frozenset(), max_size)
        feed.open(queue)
        found: list[tuple[int, tuple[str, ...]]] = []
        for place, numbers in enumerate(notices):
            notice = Notice(publication=place, subscriptions=tuple(numbers), payload=b"{}")
            feed.dispatch([notice], place + 1)
            if place < len(takes) and takes[place]:
                found += [(each.publication, each.subscriptions) for each in queue.take_waiting()]
        found += [(each.publication, each.subscriptions) for each in queue.take_waiting()]
        expected = [
            (place, tuple(dict.fromkeys(f"s{number}" for number in numbers if number in (1, 3))))
            for place, numbers in enumerate(notices)
            if place > after and {1, 3} & set(numbers)
        ]
        assert found == expected[: len(found)]
        assert len(found) == len(expected) or queue.end_reason == "slow"

    asyncio.run(follow())


def test_a_stream_whose_notices_vanish_while_it_reads_them_says_resume(rig: Rig) -> None:
    client = rig.start().client()
    subscribe(client, "price >= 0")
    for price in range(3):
        client.post("/publications", json={"price": price})
    with Listener(client, Last_Event_ID="-1") as events:
        assert [events.next()["publication"] for _ in range(3)] == [0, 1, 2]

    def vanish(position: int) -> object:
        if position == 0:
            raise NoticesRemovedError
        return read(position)

    read = rig.broker.read_notices
    rig.broker.read_notices = vanish  # type: ignore[method-assign, assignment]
    with Listener(client, Last_Event_ID="-1") as events:
        last = events.take()
        assert last is not None and json.loads(last.data) == {"reason": "removed", "after": -1}
