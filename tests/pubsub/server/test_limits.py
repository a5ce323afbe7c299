"""Token buckets: never more than the rate and one burst."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.pubsub.server.limits import TokenBucket


@given(
    per_s=st.floats(0.5, 1000),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), max_size=40),
)
def test_no_window_has_more_than_the_rate_and_a_burst(
    per_s: float, steps: list[tuple[float, int]]
) -> None:
    bucket, now_s, taken = TokenBucket(per_s, 0.0), 0.0, 0
    burst = max(1.0, 2 * per_s)
    largest = 0
    for pause_s, count in steps:
        now_s += pause_s
        if bucket.take(count, now_s) == 0:
            taken += count
            largest = max(largest, count)
        assert taken <= per_s * now_s + max(burst, largest) + burst + 1e-6


@given(per_s=st.floats(0.5, 1000), count=st.integers(1, 5000))
def test_waiting_as_long_as_told_is_enough(per_s: float, count: int) -> None:
    bucket = TokenBucket(per_s, 0.0)
    while (wait_s := bucket.take(count, 0.0)) == 0:
        pass
    assert bucket.take(count, wait_s) == 0


def test_time_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(1, 10.0)
    assert bucket.take(2, 10.0) == 0
    assert bucket.take(1, 5.0) == 1
    assert bucket.take(1, 11.0) == 0
