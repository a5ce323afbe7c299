"""The load of the end-to-end benchmark, sent through a broker without Spark."""

from pathlib import Path

import pytest

from penstock.pubsub.bench.load import BenchSpec
from penstock.pubsub.bench.request_load import make_bench_requests
from penstock.pubsub.broker import PublishRequest, SubscribeRequest
from penstock.pubsub.kernels.backend import Backend
from penstock.pubsub.local_broker import LocalBroker


@pytest.mark.parametrize("is_encrypted", [True, False])
def test_the_load_matches_as_brute_force_says(tmp_path: Path, is_encrypted: bool) -> None:
    spec = BenchSpec(
        subscriptions=400,
        attributes=2,
        match_rate=0.05,
        is_encrypted=is_encrypted,
        publications=1,
        slices=1,
        threads=1,
        rounds=1,
        seed=3,
        backend=Backend.NUMPY,
    )
    load = make_bench_requests(spec)
    subscriptions = [
        SubscribeRequest(number=row["number"], content=row["content"])
        for row in load.subscriptions.to_pylist()
    ]
    publications = [
        PublishRequest(content=row["content"], payload=row["payload"])
        for row in load.make_publications(4090, 20).to_pylist()
    ]
    with LocalBroker(load.space, tmp_path) as broker:
        broker.submit(subscriptions)
        broker.submit(publications)
        notices, _ = broker.read_notices(0)
        assert broker.read_refusals(0) == ([], 0)
    assert len(notices) == 20
    for notice in notices:
        assert sorted(notice.subscriptions) == load.find_matches(notice.payload).tolist()
    assert sum(len(notice.subscriptions) for notice in notices) > 200
