"""The watermark."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.stateful.streams import SECOND, timed

from penstock.pipelines.stateful import try_batches, windows
from penstock.pipelines.stateful.watermark import later, latest_time, times_of, watermark_after

times = st.none() | st.integers(-10, 10)


@given(st.lists(st.fixed_dictionaries({"a": times, "b": times}), max_size=6), st.integers(0, 5))
def test_it_is_the_least_of_the_inputs_minus_the_delay_and_never_falls(
    batches: list[dict[str, int | None]], delay_us: int
) -> None:
    latest: dict[str, int | None] = {"a": None, "b": None}
    mark = None
    for number, batch in enumerate(batches, start=1):
        latest = later(latest, batch)
        before, mark = mark, watermark_after(mark, latest, delay_us)
        seen = {
            name: [time for each in batches[:number] if (time := each[name]) is not None]
            for name in "ab"
        }
        expected = min(map(max, seen.values())) - delay_us if all(seen.values()) else None
        assert mark == expected
        assert before is None or (mark is not None and mark >= before)


def test_it_does_not_fall_when_the_delay_grows() -> None:
    assert watermark_after(90, {"a": 100}, delay_us=50) == 90


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_all_units_are_microseconds(unit: str, zone: str | None) -> None:
    column = pa.array([3, None, 2], pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    batch = pa.record_batch({"at": column})
    assert latest_time(batch, "at") == 3 * SECOND
    assert times_of(batch, "at").tolist()[::2] == [3 * SECOND, 2 * SECOND]
    assert latest_time(batch.slice(1, 1), "at") is None
    assert latest_time(batch.slice(0, 0), "at") is None


def test_rows_without_a_time_are_late() -> None:
    rows = timed(1, 2).append_column("at", pa.array([5, None], pa.timestamp("us", "UTC")))
    tried = try_batches(windows(size_s=1, time="at"), [rows], "user string, at timestamp")
    assert [row["at"] for row in tried.late[0]] == [None]
