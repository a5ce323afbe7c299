"""Where a source stands: read limits, new partitions, lost offsets, the same tasks again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.spark.ingest.backlog import measure_distance
from penstock.errors import InputError
from penstock.topics.kafka.source_offsets import SourceOffsets, cut_tasks, plan_next


def offsets(next: dict[int, int], **more: Any) -> SourceOffsets:
    return SourceOffsets(topic="orders", next=next, **more)


def plan(
    start: SourceOffsets,
    end: dict[int, int],
    first: dict[int, int] | None = None,
    most: int | None = None,
    tasks: int | None = None,
    on_lost: str = "fail",
) -> SourceOffsets:
    return plan_next(start, end, lambda: first or {}, most=most, tasks=tasks, on_lost=on_lost)


def test_json_there_and_back() -> None:
    here = offsets({10: 3, 2: 5}, lost=7, tasks=4)
    assert here.to_json() == {"orders": {"2": 5, "10": 3}, "#lost": 7, "#tasks": 4}
    assert SourceOffsets.from_json("orders", here.to_json()) == here
    with pytest.raises(InputError, match="is now 'clicks', but the checkpoint has read orders"):
        SourceOffsets.from_json("clicks", here.to_json())


def test_the_backlog_is_the_distance_of_positions() -> None:
    here, there = offsets({0: 5, 1: 5}, lost=9, tasks=4), offsets({0: 9, 1: 5, 2: 3})
    assert measure_distance(here.to_json(), there.latest_json()) == 7


def test_nothing_new_is_the_same_position() -> None:
    def never() -> dict[int, int]:
        raise AssertionError

    start = offsets({0: 5, 1: 2})
    end = {0: 5, 1: 2}
    assert plan_next(start, end, never, most=9, tasks=2, on_lost="fail") is start


def test_a_new_partition_is_read_from_its_begin() -> None:
    assert plan(offsets({0: 5}), {0: 5, 1: 3}).next == {0: 5, 1: 3}


def test_the_limit_counts_offsets_of_all_partitions() -> None:
    assert plan(offsets({0: 0, 1: 0}), {0: 100, 1: 100}, most=10).next == {0: 5, 1: 5}


def test_lost_offsets_are_an_error() -> None:
    with pytest.raises(InputError) as caught:
        plan(offsets({0: 5}), {0: 9}, {0: 7})
    problem = "partition 0: offset 5 was removed before it was read; the first one there is 7"
    assert (caught.value.field, caught.value.problem) == ("topic orders", problem)
    with pytest.raises(InputError, match="partition 1: offset 0 was removed"):
        plan(offsets({0: 5}), {0: 9, 1: 9}, {1: 2})


def test_lost_offsets_are_counted_by_choice() -> None:
    after = plan(offsets({0: 5}, lost=1), {0: 9}, {0: 7}, most=1, on_lost="skip")
    assert (after.next, after.lost) == ({0: 8}, 3)
    # everything is lost, and the partition is empty
    assert plan(offsets({0: 5}), {0: 9}, {0: 9}, on_lost="skip").next == {0: 9}


@pytest.mark.parametrize("end", [{0: 4}, {1: 9}])
def test_a_topic_that_was_made_anew_is_an_error(end: dict[int, int]) -> None:
    with pytest.raises(InputError, match="read up to offset 5, but it"):
        plan(offsets({0: 5}), end, on_lost="skip")


@given(
    low=st.dictionaries(st.integers(0, 4), st.integers(0, 3000), min_size=1),
    more=st.lists(st.integers(0, 3000), min_size=5, max_size=5),
    tasks=st.none() | st.integers(1, 9),
    most=st.none() | st.integers(1, 5000),
)
def test_batches_read_every_offset_once(
    low: dict[int, int], more: list[int], tasks: int | None, most: int | None
) -> None:
    here, high = offsets(low), {number: low.get(number, 0) + more[number] for number in range(5)}
    read: dict[int, int] = dict(low)
    while (then := plan(here, high, most=most, tasks=tasks)) is not here:
        shares = cut_tasks(here, then)
        assert shares == cut_tasks(here, SourceOffsets.from_json("orders", then.to_json()))
        assert len(shares) <= (tasks or len(high))
        for part in (part for share in shares for part in share):
            assert part.start == read.get(part.partition, 0)
            read[part.partition] = part.end
        here = then
    assert {**dict.fromkeys(high, 0), **read} == high


def test_a_small_batch_has_one_task() -> None:
    assert len(cut_tasks(offsets({0: 0, 1: 0}), offsets({0: 9, 1: 9}, tasks=8))) == 1
    assert len(cut_tasks(offsets({0: 0}), offsets({0: 9000}, tasks=8))) == 8
    assert cut_tasks(offsets({0: 9}), offsets({0: 9}, tasks=8)) == ()
