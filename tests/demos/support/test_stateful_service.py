"""A ready function that waits is the ready function, only slower."""

import pickle
import time

import pyarrow as pa
import pytest

from penstock.demos.support.emulated_service import EmulatedService, with_service
from penstock.errors import InputError
from penstock.pipelines.stateful import counts, sessions, try_batches

BATCHES = [[{"id": n, "word": "ab"[n % 2]} for n in range(first, first + 5)] for first in (0, 5)]
COLUMNS = "id long, word string"


def test_the_answer_is_the_same_after_its_time() -> None:
    service = EmulatedService(service_s=0.004, scv=0.1)
    waiting = pickle.loads(pickle.dumps(with_service(counts(by="word"), service, "count")))
    begun = time.perf_counter()
    tried = try_batches(waiting, BATCHES, COLUMNS)
    took_s = time.perf_counter() - begun
    assert tried.rows == try_batches(counts(by="word"), BATCHES, COLUMNS).rows
    assert took_s >= service.times("count", pa.array(range(10))).sum()


def test_it_says_what_the_function_says() -> None:
    waiting = with_service(sessions(by="word", gap_s=1), EmulatedService(), "session")
    with pytest.raises(InputError, match="ttl_s: would delete open state of"):
        try_batches(waiting, BATCHES, COLUMNS, ttl_s=5)
    waiting = with_service(counts(by="wort"), EmulatedService(), "count")
    with pytest.raises(InputError, match="did you mean 'word'"):
        try_batches(waiting, BATCHES, COLUMNS)
