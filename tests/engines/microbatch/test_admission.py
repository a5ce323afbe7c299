"""Batches are bounded by what replicas carry, and what is given up is given up once."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.tools.recording import batch, task

from penstock.engines.microbatch.admission import FIRST_ROWS, GROWTH, Throughput, WaitingRows
from penstock.engines.microbatch.batch_record import TaskRecord


def test_a_first_batch_is_small() -> None:
    assert Throughput().limit(3, 1.0) == 3 * FIRST_ROWS


def test_a_batch_takes_what_replicas_carry_in_the_time_it_shall_last() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=100, busy_s=1.0)] * 2))
    assert speed.limit(2, 0.5) == 100
    assert speed.limit(6, 0.5) == 300


def test_rows_that_take_long_make_a_batch_rather_longer_than_shorter() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=1, busy_s=0.7)]))
    assert speed.limit(3, 1.0) == 6


def test_replicas_without_rows_tell_nothing_where_rows_are_few() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=1, busy_s=0.1), task(rows=0, busy_s=0.0)]))
    assert speed.limit(2, 1.0) == 20


def test_the_slowest_task_decides_how_long_a_batch_is() -> None:
    uneven = [task(rows=50, busy_s=0.5), task(rows=50, busy_s=2.0)]
    assert Throughput().after(batch(0, tasks=uneven)).limit(2, 1.0) == 50


def test_a_few_quick_rows_do_not_promise_millions() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=8, busy_s=1e-6)]))
    assert speed.limit(1, 1.0) == 8 * GROWTH


def test_an_empty_batch_teaches_nothing() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=100, busy_s=1.0)]))
    assert speed.after(batch(1, tasks=[task(rows=0, busy_s=0.0)])) == speed


def test_batches_without_records_grow_to_what_is_carried_in_time() -> None:
    """As an egress: 0.2 s for a batch, and 1 ms for each row."""
    speed = Throughput()
    assert speed.after_unrecorded(0, 1, 0.2) == speed
    sizes = []
    for _ in range(8):
        sizes.append(speed.limit(1, 1.0))
        speed = speed.after_unrecorded(sizes[-1], 1, 0.2 + 0.001 * sizes[-1])
    assert sizes[0] == FIRST_ROWS
    assert 700 <= sizes[-1] <= 800


def test_each_replica_has_a_speed_of_its_own() -> None:
    pair = [task(rows=100, busy_s=1.0), task(rows=20, busy_s=1.0)]
    assert Throughput().after(batch(0, tasks=pair)).replicas == (100.0, 20.0)


OPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(0, 30)),
        st.tuples(st.just("expire"), st.integers(0, 30)),
        st.tuples(st.just("batch"), st.integers(1, 20)),
    ),
    max_size=30,
)


@given(OPS, st.one_of(st.none(), st.integers(1, 25)))
def test_every_row_is_processed_or_given_up_exactly_once(
    ops: list[tuple[str, int]], size: int | None
) -> None:
    queue = WaitingRows(start=0, end=0)
    fate: dict[int, str] = {}
    for kind, number in ops:
        if kind == "arrive":
            queue = WaitingRows(
                start=queue.start, end=queue.end + number, seen=queue.seen, skips=queue.skips
            )
            queue = queue.drop_overflow(size)
            assert size is None or queue.live_rows <= size
        elif kind == "expire":
            queue = queue.drop_expired(queue.start + number)
        else:
            end = queue.find_end(min(number, queue.live_rows))
            inside = [s for s in queue.skips if s[0] < end and s[1] > queue.start]
            for row in range(queue.start, end):
                cause = [why for low, high, why in inside if low <= row < high]
                assert len(cause) <= 1
                assert row not in fate
                fate[row] = cause[0] if cause else "processed"
            here = [fate[row] for row in range(queue.start, end)]
            assert here.count("processed") <= number
            left = tuple(s for s in queue.skips if s[1] > end)
            queue = WaitingRows(start=end, end=queue.end, seen=queue.seen, skips=left)
    assert sorted(fate) == list(range(queue.start))


def test_without_a_size_nothing_overflows() -> None:
    assert WaitingRows(start=0, end=10_000).drop_overflow(None).live_rows == 10_000


def test_what_does_not_fit_is_the_newest() -> None:
    queue = WaitingRows(start=0, end=12).drop_overflow(10)
    assert queue.skips == ((10, 12, "overflow"),)


def test_what_is_too_old_is_the_oldest() -> None:
    assert WaitingRows(start=5, end=12).drop_expired(8).skips == ((5, 8, "expired"),)


def sliced(rows: int, call_s: float, row_s: float, slices: int = 32) -> TaskRecord:
    """One task whose rows are spread over its slices, as evenly as they go, but not quite."""
    counts = [rows // slices + (number < rows % slices) for number in range(slices)]
    loads = tuple(call_s + row_s * count if count else 0.0 for count in counts)
    whole = task(rows=rows, busy_s=sum(loads))
    return replace(whole, slices=tuple(range(slices)), loads=loads, counts=tuple(counts))


@given(st.floats(0.001, 0.05), st.floats(1e-5, 0.01), st.sampled_from([0.2, 1.0, 5.0]))
def test_calls_for_slices_do_not_make_batches_ever_smaller(
    call_s: float, row_s: float, batch_s: float
) -> None:
    # 32 calls a replica may take longer than a batch shall: it must come to rows all the same
    speed, rows = Throughput(), 0
    for number in range(60):
        rows = speed.limit(2, batch_s) // 2
        speed = speed.after(batch(number, tasks=[sliced(rows, call_s, row_s)] * 2))
    calls_s, work_s = 32 * call_s, rows * row_s
    assert work_s > 0.8 * min(calls_s, batch_s)
    assert calls_s + work_s < 1.2 * max(batch_s, 2 * calls_s) + 2 * row_s


def test_a_batch_for_an_operator_without_slices_is_as_before() -> None:
    speed = Throughput().after(batch(0, tasks=[task(rows=100, busy_s=1.0)] * 2))
    assert (speed.slices, speed.calls.rows_of_one) == (0, 0.0)
