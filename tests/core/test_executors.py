"""Executors follow the sum of replicas: at once upwards, after a delay downwards."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.executors import ExecutorReason, ExecutorRules, Fleet, resize_fleet

FOUR = ExecutorRules(low=1, high=4, cores=2, delay_s=10.0)


def targets(needs: Sequence[tuple[float, int]], rules: ExecutorRules, first: int = 1) -> list[int]:
    """Return the target after each (time, replicas)."""
    fleet, found = Fleet(target=first), []
    for at, replicas in needs:
        fleet, _ = resize_fleet(fleet, replicas, at, rules)
        found.append(fleet.target)
    return found


@pytest.mark.parametrize(
    ("replicas", "needed"), [(0, 1), (1, 1), (2, 1), (3, 2), (8, 4), (9, 4), (100, 4)]
)
def test_whole_executors_within_the_bounds(replicas: int, needed: int) -> None:
    assert FOUR.needed(replicas) == needed


def test_more_are_bought_at_once() -> None:
    assert resize_fleet(Fleet(target=1), 5, 0.0, FOUR) == (
        Fleet(target=3),
        ExecutorReason.MORE_REPLICAS,
    )


def test_fewer_are_returned_after_the_delay() -> None:
    course = [(0.0, 8), (1.0, 2), (5.0, 2), (10.9, 2), (11.0, 2), (12.0, 2)]
    assert targets(course, FOUR) == [4, 4, 4, 4, 1, 1]


def test_a_need_in_between_is_remembered() -> None:
    """Back to 3 for a moment: only one goes, and the rest waits for a delay of its own."""
    course = [(0.0, 8), (1.0, 2), (6.0, 6), (7.0, 2), (11.0, 2), (16.0, 2), (21.0, 2)]
    assert targets(course, FOUR) == [4, 4, 4, 4, 3, 3, 1]


def test_a_need_for_all_begins_the_delay_anew() -> None:
    assert targets([(0.0, 8), (1.0, 2), (9.0, 8), (10.0, 2), (19.0, 2)], FOUR)[-1] == 4


def test_every_step_has_one_reason() -> None:
    fleet, reasons = Fleet(target=2), []
    for at, replicas in ((0.0, 4), (1.0, 5), (2.0, 1), (3.0, 1), (12.0, 1)):
        fleet, why = resize_fleet(fleet, replicas, at, FOUR)
        reasons.append(str(why))
    waits = "needed-lately"
    assert reasons == ["enough", "more-replicas", waits, waits, "fewer-for-long"]


COURSES = st.lists(
    st.tuples(st.floats(0.0, 20.0), st.integers(0, 40)), min_size=1, max_size=40
).map(lambda steps: [(sum(s for s, _ in steps[: i + 1]), k) for i, (_, k) in enumerate(steps)])
RULES = st.builds(
    lambda low, more, cores, delay_s: ExecutorRules(
        low=low, high=low + more, cores=cores, delay_s=delay_s
    ),
    st.integers(1, 4),
    st.integers(0, 8),
    st.integers(1, 5),
    st.floats(0.0, 30.0),
)


@given(COURSES, RULES)
def test_never_fewer_than_the_last_while_needed(
    course: list[tuple[float, int]], rules: ExecutorRules
) -> None:
    found = targets(course, rules, first=rules.low)
    for place, ((at, _), target) in enumerate(zip(course, found, strict=True)):
        recent = [k for then, k in course[: place + 1] if then > at - rules.delay_s + 1e-6]
        assert target >= max(map(rules.needed, [*recent, course[place][1]]))
        assert rules.low <= target <= rules.high


@given(COURSES, RULES, st.integers(0, 40))
def test_in_the_end_there_are_as_many_as_needed(
    course: list[tuple[float, int]], rules: ExecutorRules, replicas: int
) -> None:
    """Two delays after the last change at the latest."""
    end = course[-1][0]
    calm = [(end + 1 + rules.delay_s * share, replicas) for share in (0, 1.01, 2.02)]
    assert targets([*course, *calm], rules, first=rules.low)[-1] == rules.needed(replicas)
