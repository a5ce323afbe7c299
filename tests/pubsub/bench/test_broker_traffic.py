"""What the benchmarks send through a broker, and the times that they read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.pubsub.test_topic_broker import SPACE, write, write_notices

from penstock.pubsub.bench.broker_traffic import publish_due, read_notice_times, subscribe_all
from penstock.pubsub.broker import PublishRequest, SubscribeRequest
from penstock.pubsub.operators.request_rows import make_request_rows
from penstock.pubsub.operators.topics import ACKS, NOTICES, REQUESTS
from penstock.pubsub.topic_broker import TopicBroker
from penstock.topics.embedded.topic import Topic


def test_subscribing_waits_for_every_ack(tmp_path: Path) -> None:
    requests = [SubscribeRequest(number=n, content=b"price > 1") for n in range(3)]
    waits = []

    def wait() -> None:
        number = len(waits)
        waits.append(number)
        write(tmp_path, ACKS, {"number": [number], "is_active": [True], "publication": [0]})

    with TopicBroker(SPACE, tmp_path) as broker:
        subscribe_all(broker, make_request_rows(requests, 0), wait)
    assert waits == [0, 1, 2]
    assert Topic.open(tmp_path / "topics" / REQUESTS).refresh() == 3


def test_a_delay_counts_from_when_a_publication_was_due(tmp_path: Path) -> None:
    rows = make_request_rows([PublishRequest(content=b"{}", payload=b"p")] * 3, 0)
    with TopicBroker(SPACE, tmp_path) as broker:
        publish_due(broker, rows, np.array([1.5, 2.5, 3.5]))
        publish_due(broker, rows.slice(0, 1), 4.25)
        requests = Topic.open(tmp_path / "topics" / REQUESTS)
        events = pa.concat_batches(list(requests.read(0, 4)))["_event"].cast(pa.int64())
        assert sorted(events.to_pylist()) == [1_500_000, 2_500_000, 3_500_000, 4_250_000]
        notices = Topic.open(tmp_path / "topics" / NOTICES)
        assert len(read_notice_times(notices, 0).delays_s) == 0
        write_notices(tmp_path, [0, 1])
        write_notices(tmp_path, [2])
        first, last = notices.commits(0, notices.refresh())
        times = read_notice_times(notices, 0, origin_s=last.at)
        assert times.done_s.tolist() == pytest.approx([first.at - last.at] * 2 + [0])
        # a row without a time is due when it is written
        assert times.delays_s.tolist() == pytest.approx([0, 0, 0], abs=1)
        assert times.due_from(times.due_s[-1]).done_s.tolist() == [0]
        assert read_notice_times(notices, 2, origin_s=last.at).done_s.tolist() == [0]
