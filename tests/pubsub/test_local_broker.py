"""A broker without Spark, against brute force."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.pubsub.oracle import EVERYTHING, Traffic, check_notices, make_key

from penstock.pubsub.broker import (
    Ack,
    Notice,
    NoticesRemovedError,
    PublishRequest,
    SubscribeRequest,
    UnsubscribeRequest,
)
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.local_broker import LocalBroker
from penstock.pubsub.pipeline import PubSubOptions
from penstock.pubsub.spaces.space import parse_space

PLAIN = parse_space({"format": 1, "scheme": "plain", "attributes": {"price": {}, "symbol": {}}})

SLICES = PubSubOptions(access_slices=3, match_slices=4, exit_slices=2, backend=Backend.NUMPY)


def subscribe(number: int, text: str) -> SubscribeRequest:
    return SubscribeRequest(number=number, content=text.encode())


def publish(**fields: object) -> PublishRequest:
    return PublishRequest(content=json.dumps(fields).encode(), payload=b"")


def test_a_subscriber_gets_what_matches(tmp_path: Path) -> None:
    with LocalBroker(PLAIN, tmp_path) as broker:
        broker.submit([subscribe(1, "price > 10"), subscribe(7, "symbol = 'AB'")])
        broker.submit([publish(price=11, symbol="AB"), publish(price=9, symbol="X")])
        broker.submit([publish(price=9, symbol="AB"), publish(price=99)])
        notices, position = broker.read_notices(0)
        acks, _ = broker.read_acks(0)
    assert [(n.publication, set(n.subscriptions)) for n in notices] == [
        (0, {1, 7}),
        (2, {7}),
        (3, {1}),
    ]
    assert json.loads(notices[0].payload) == {"price": 11, "symbol": "AB"}
    assert sorted(acks, key=lambda ack: ack.number) == [
        Ack(number=1, is_active=True, publication=0),
        Ack(number=7, is_active=True, publication=0),
    ]
    assert position == 3


@pytest.mark.parametrize("scheme", ["plain", "aspe"])
def test_it_equals_brute_force_also_after_restarts(tmp_path: Path, scheme: str) -> None:
    traffic = Traffic(make_key(scheme), seed=3)
    notices: list[Notice] = []
    acks: list[Ack] = []
    for round_number in range(4):
        with LocalBroker(traffic.space, tmp_path, options=SLICES) as broker:
            # what was read before comes again, in the same order
            assert list(broker.read_notices(0)[0]) == notices
            assert list(broker.read_acks(0)[0]) == acks
            if round_number == 0:
                broker.submit([traffic.subscribe(EVERYTHING)])
            for _ in range(5):
                broker.submit(traffic.draw_requests(publications=12, changes=10))
            notices, acks = list(broker.read_notices(0)[0]), list(broker.read_acks(0)[0])
    assert check_notices(traffic, acks, notices) > 300


def test_wrong_requests_are_refused_with_the_place(tmp_path: Path) -> None:
    with LocalBroker(PLAIN, tmp_path) as broker:
        broker.submit(
            [
                subscribe(1, "price >> 3"),
                subscribe(2, "colour = 'red'"),
                subscribe(2**32, "price > 3"),
                PublishRequest(content=b"[1]", payload=b""),
                PublishRequest(content=b"\xff", payload=b""),
                PublishRequest(content=b"[" * 100_000, payload=b""),
                subscribe(3, "price > 3"),
                publish(price=4),
            ]
        )
        refusals, position = broker.read_refusals(0)
        assert [notice.subscriptions for notice in broker.read_notices(0)[0]] == [(3,)]
        assert [ack.number for ack in broker.read_acks(0)[0]] == [3]
    assert position == 6
    assert [refusal.number for refusal in refusals] == [1, 2, 2**32, None, None, None]
    problems = [refusal.problem for refusal in refusals]
    assert "expected" in problems[0] and "at character 8" in problems[0]
    assert "'colour' is not declared" in problems[1]
    assert "must be from 0 to 4294967295" in problems[2]
    assert "must be a JSON object" in problems[3]
    assert "UTF-8" in problems[4]
    assert "not JSON" in problems[5]


def test_an_encrypted_space_refuses_plaintext_and_does_not_repeat_it(tmp_path: Path) -> None:
    traffic = Traffic(make_key("aspe"))
    vector = traffic.publish().content
    with LocalBroker(traffic.space, tmp_path) as broker:
        broker.submit(
            [
                subscribe(1, "price > 3"),
                PublishRequest(content=b'{"price": 4}', payload=b"x"),
                PublishRequest(content=vector, payload=b""),
                PublishRequest(content=(2 * np.frombuffer(vector)).tobytes(), payload=b"x"),
                PublishRequest(content=np.full(7, np.nan).tobytes(), payload=b"x"),
            ]
        )
        refusals, _ = broker.read_refusals(0)
        assert broker.read_acks(0) == ([], 0) and broker.read_notices(0) == ([], 0)
    problems = [refusal.problem for refusal in refusals]
    assert "1 to 16 boxes of 336 bytes, got 9 bytes" in problems[0]
    assert "must be 56 bytes, got 12" in problems[1]
    assert "payload: must not be empty" in problems[2]
    assert problems[3:] == ["publication: is no encrypted vector: its length must be 1"] * 2
    assert not any("price" in problem for problem in problems)


def test_subscribe_and_unsubscribe_in_one_commit_have_an_empty_interval(tmp_path: Path) -> None:
    with LocalBroker(PLAIN, tmp_path) as broker:
        broker.submit([publish(price=1)])
        broker.submit([subscribe(1, "price > 0"), UnsubscribeRequest(number=1), publish(price=1)])
        broker.submit([UnsubscribeRequest(number=5)])
        acks, _ = broker.read_acks(0)
        assert broker.read_notices(0)[0] == []
    assert [(ack.number, ack.is_active, ack.publication) for ack in acks] == [
        (1, True, 1),
        (1, False, 1),
        (5, False, 2),
    ]


def test_old_notices_are_removed_and_asking_for_them_is_an_error(tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the directory
        with LocalBroker(PLAIN, tmp_path, max_notices=2) as broker:
            if not broker.read_acks(0)[0]:
                broker.submit([subscribe(1, "price > 0")])
                broker.submit([publish(price=n % 2) for n in range(8)])  # 1, 3, 5, 7 match
            with pytest.raises(NoticesRemovedError):
                broker.find_notices(2)
            with pytest.raises(NoticesRemovedError):
                broker.read_notices(0)
            positions = [broker.find_notices(publication) for publication in (3, 4, 5, 7, 100)]
            assert positions == [2, 2, 3, 4, 4]
            assert [notice.publication for notice in broker.read_notices(2)[0]] == [5, 7]
