"""The broker on the topics of a run directory; rows of a run are written by the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.pubsub.broker import (
    Ack,
    NoticesRemovedError,
    PublishRequest,
    Refusal,
    SubscribeRequest,
    UnsubscribeRequest,
)
from penstock.pubsub.operators.topics import ACKS, NOTICES, REFUSALS, REQUESTS, SCHEMAS
from penstock.pubsub.spaces.space import parse_space
from penstock.pubsub.topic_broker import TopicBroker
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import parse_schema

SPACE = parse_space({"format": 1, "scheme": "plain", "attributes": {"price": {}}})


def write(run: Path, topic: str, columns: Mapping[str, Sequence[object]]) -> None:
    """One commit of an operator."""
    schema = parse_schema(SCHEMAS[topic])
    with TopicWriter(Topic.open(run / "topics" / topic), "operator") as writer:
        writer.append(pa.table(dict(columns), schema=schema))


def write_notices(run: Path, publications: Sequence[int]) -> None:
    numbers = [np.array([p, p + 1], "<u4").tobytes() for p in publications]
    payloads = [str(p).encode() for p in publications]
    columns = {"publication": publications, "numbers": numbers, "payload": payloads}
    write(run, NOTICES, columns)


def test_requests_are_rows_of_one_commit_and_keep_their_lane(tmp_path: Path) -> None:
    with TopicBroker(SPACE, tmp_path) as broker:
        assert broker.space == SPACE
        broker.submit([])
        broker.submit(
            [
                SubscribeRequest(number=5, content=b"price > 1"),
                PublishRequest(content=b"{}", payload=b"p"),
                UnsubscribeRequest(number=5),
            ]
        )
    with TopicBroker(SPACE, tmp_path) as broker:
        broker.submit([PublishRequest(content=b"{}", payload=b"")])
    topic = Topic.open(tmp_path / "topics" / REQUESTS)
    assert topic.commit_count == 2
    rows = [row for part in topic.read(0, 4) for row in part.drop_columns("_event").to_pylist()]
    rows.sort(key=lambda row: (row["lane"], row["kind"]))
    assert [tuple(row.values()) for row in rows] == [
        (1, 2, None, b"{}", b"p"),
        (3, 2, None, b"{}", b""),
        (5, 0, 5, b"price > 1", None),
        (5, 1, 5, None, None),
    ]


def test_results_are_read_commit_by_commit_in_order_of_publications(tmp_path: Path) -> None:
    with TopicBroker(SPACE, tmp_path) as broker:
        assert broker.read_notices(0) == ([], 0)
        write_notices(tmp_path, [3, 0, 2])
        write_notices(tmp_path, [9, 4])
        notices, position = broker.read_notices(0)
        assert [(n.publication, n.subscriptions, n.payload) for n in notices] == [
            (0, (0, 1), b"0"),
            (2, (2, 3), b"2"),
            (3, (3, 4), b"3"),
            (4, (4, 5), b"4"),
            (9, (9, 10), b"9"),
        ]
        assert position == 5
        assert [n.publication for n in broker.read_notices(2)[0]] == [3, 4, 9]
        write(tmp_path, ACKS, {"number": [7], "is_active": [True], "publication": [4]})
        assert broker.read_acks(0) == ([Ack(number=7, is_active=True, publication=4)], 1)
        write(tmp_path, REFUSALS, {"kind": [2], "number": [None], "problem": ["no"]})
        assert broker.read_refusals(0) == ([Refusal(number=None, problem="no")], 1)


def test_what_was_not_read_is_kept_and_what_was_read_may_go(tmp_path: Path) -> None:
    directory = tmp_path / "topics" / NOTICES
    with TopicBroker(SPACE, tmp_path) as broker:
        for publication in range(4):
            write_notices(tmp_path, [publication])
        assert broker.read_notices(0)[1] == 4
        later = 10.0**10
        assert trim(Topic.open(directory), later) == 0
        broker.read_notices(2)
        broker.read_notices(1)  # looking back changes nothing
        assert positions(directory) == {"broker": 2}
        assert trim(Topic.open(directory), later) == 2
        with pytest.raises(NoticesRemovedError):
            broker.read_notices(1)
        with pytest.raises(NoticesRemovedError):
            broker.find_notices(0)
        assert [broker.find_notices(p) for p in (1, 2, 3, 99)] == [2, 3, 4, 4]
    with TopicBroker(SPACE, tmp_path) as broker:  # a new start keeps the position
        assert positions(directory) == {"broker": 2}
        assert [n.publication for n in broker.read_notices(2)[0]] == [2, 3]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4), max_size=8))
def test_a_publication_is_found_in_any_commits(
    tmp_path_factory: pytest.TempPathFactory, parts: list[set[int]]
) -> None:
    run = tmp_path_factory.mktemp("run")
    commits = [[10 * place + number for number in part] for place, part in enumerate(parts)]
    published = sorted(number for commit in commits for number in commit)
    with TopicBroker(SPACE, run) as broker:
        for commit in commits:
            write_notices(run, commit)
        for publication in range(-1, 10 * len(parts) + 1):
            notices, _ = broker.read_notices(broker.find_notices(publication))
            assert [n.publication for n in notices] == [p for p in published if p > publication]
