"""The index of a journal reads what `read_journal` reads, while the file grows and is split."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock.control.loop import Tick
from penstock.runs.decimation import decimate, decimate_times, evenly, slice_range, to_json_numbers
from penstock.runs.journal import JournalWriter, read_journal
from penstock.runs.journal_index import JournalIndex
from penstock.runs.journal_parts import Limits
from penstock.runs.run_columns import RunColumns, read_columns
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def ticks() -> list[Tick]:
    """Forty minutes of a simulation."""
    spec = SimulationSpec(minutes=40, guards={"cooldown_s": 60.0})
    return [*prepare_simulation(spec).ticks()]


def write(path: Path, ticks: list[Tick]) -> None:
    with JournalWriter(path, {"policy": "ds2"}) as writer:
        for tick in ticks:
            writer.write(tick)


def test_an_index_has_every_tick_of_a_journal(tmp_path: Path, ticks: list[Tick]) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, ticks)
    index = JournalIndex(path)
    assert index.refresh()
    assert [index.tick(number) for number in range(len(index))] == list(read_journal(path).ticks)
    assert index.header == {"policy": "ds2"}
    assert not index.refresh()


@pytest.mark.parametrize("name", ["journal-v1.jsonl", "journal-spark-v1.jsonl"])
def test_journals_of_earlier_versions_are_indexed(name: str) -> None:
    index = JournalIndex(RECORDED / name)
    index.refresh()
    known = read_journal(RECORDED / name).ticks
    assert [index.data(number)["at"] for number in range(len(index))] == [t.at for t in known]
    assert read_columns(index).operators


def test_ticks_are_found_by_time_in_all_parts_and_beside_damaged_times(
    tmp_path: Path, ticks: list[Tick]
) -> None:
    path = tmp_path / "journal.jsonl"
    limits = Limits(part_bytes=20_000, older_parts=50)
    with JournalWriter(path, {"policy": "ds2"}, limits=limits) as writer:
        writer.carry = dict
        for tick in ticks:
            writer.write(tick)
    index = JournalIndex(path)
    index.refresh()
    assert len([*tmp_path.iterdir()]) > 3 and index.end_s == ticks[-1].at
    for number, tick in enumerate(ticks):
        assert index.find(tick.at) == index.find(tick.at + 0.5) == number
    assert index.find(-1.0) == index.find(ticks[0].at - 1) == 0
    write(damaged := tmp_path / "damaged.jsonl", ticks[:4])
    old = f'{{"at":{ticks[1].at},'.encode()
    damaged.write_bytes(damaged.read_bytes().replace(old, b'{"at":"soon",'))
    index = JournalIndex(damaged)
    index.refresh()
    assert index.find(ticks[2].at) == 2 and index.end_s == ticks[3].at
    assert JournalIndex(tmp_path / "none").end_s == 0.0


def test_an_index_grows_with_its_file_and_ignores_half_a_line(
    tmp_path: Path, ticks: list[Tick]
) -> None:
    path, full = tmp_path / "journal.jsonl", tmp_path / "full.jsonl"
    write(full, ticks[:20])
    data, index = full.read_bytes(), JournalIndex(path)
    assert not index.refresh() and len(index) == 0 and index.header == {}
    for cut in range(0, len(data) + 1, 997):
        path.write_bytes(data[:cut])
        index.refresh()
        lines = data[:cut].count(b"\n")
        assert len(index) == max(0, lines - 1)
    path.write_bytes(data)
    index.refresh()
    assert [t["at"] for t in index.read(3, 7)] == [tick.at for tick in ticks[3:7]]


def test_parts_are_one_journal_and_a_removed_part_starts_a_generation(
    tmp_path: Path, ticks: list[Tick]
) -> None:
    path = tmp_path / "journal.jsonl"
    index = JournalIndex(path)
    generations = set()
    with JournalWriter(path, {}, limits=Limits(part_bytes=20_000, older_parts=2)) as writer:
        writer.carry = dict
        for tick in ticks:
            writer.write(tick)
            index.refresh()
            generations.add(index.generation)
            assert index.data(len(index) - 1)["at"] == tick.at
    known = read_journal(path)
    assert [index.data(n)["at"] for n in range(len(index))] == [t.at for t in known.ticks]
    assert len(generations) > 1 and index.begins_s == known.begins_s > 0


def test_a_journal_that_is_written_anew_is_indexed_anew(tmp_path: Path, ticks: list[Tick]) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, ticks[:9])
    index = JournalIndex(path)
    index.refresh()
    write(path, ticks[:4])
    index.refresh()
    assert len(index) == 4 and index.generation == 1


def test_damaged_lines_are_counted_and_resumptions_are_known(
    tmp_path: Path, ticks: list[Tick]
) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, ticks[:3])
    with path.open("ab") as stream:
        stream.write(b'nonsense\n{"resumed":{"at":45.0}}\n{"at":"x"}\n')
    index = JournalIndex(path)
    index.refresh()
    assert (index.damaged_lines, index.resumptions) == (1, [3])
    assert index.tick(3) is None
    columns = read_columns(index)
    assert len(columns) == 4 and columns.times.tolist() == [15.0, 30.0, 45.0, 45.0]


@given(at=st.floats(-10, 3000))
@settings(max_examples=40, deadline=None)
def test_find_returns_the_last_tick_at_or_before_a_time(
    tmp_path_factory: pytest.TempPathFactory, ticks: list[Tick], at: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "found.jsonl"
    if not path.exists():
        write(path, ticks)
    index = JournalIndex(path)
    index.refresh()
    before = [number for number, tick in enumerate(ticks) if tick.at <= at]
    assert index.find(at) == max(before, default=0)


def test_columns_agree_with_ticks(tmp_path: Path, ticks: list[Tick]) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, ticks)
    index = JournalIndex(path)
    index.refresh()
    columns = read_columns(index, step=7)
    for number, tick in enumerate(ticks):
        assert columns.times[number] == tick.at
        for name, running in tick.status.running.items():
            assert columns.column("running", name)[number] == running
        merged = [h for h in tick.status.latency.values() if h.count]
        if len(merged) == 1:
            for percent in (50, 95):
                assert columns.column(f"latency_p{percent}")[number] == pytest.approx(
                    merged[0].percentile(percent), rel=1e-6
                )
        queue = tick.snapshot.operators["source"].queue if tick.snapshot else None
        if queue is not None:
            assert columns.column("queue", "source")[number] == pytest.approx(queue, rel=1e-6)
    changes = [(n, t.applied) for n, t in enumerate(ticks) if t.decision and t.decision.is_change]
    assert columns.changes == changes
    rates = columns.column("offered_rate")
    assert rates[3] == pytest.approx(
        (ticks[3].status.offered_records - ticks[2].status.offered_records) / 15, rel=1e-6
    )


WRONG = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
FIELDS = ("at", "running", "requested", "records", "latency", "snapshot", "decision", "events")


@given(
    data=st.lists(st.dictionaries(st.sampled_from((*FIELDS, "queues", "error")), WRONG), max_size=4)
)
def test_a_tick_of_any_form_adds_one_row_and_no_error(data: list[dict[str, object]]) -> None:
    columns = RunColumns()
    columns.extend(data)
    assert len(columns) == len(data)
    assert all(len(columns.column(*name)) == len(data) for name in columns.names)
    assert np.all(np.diff(columns.times) >= 0)


def windows(count: int, points: int) -> Iterator[range]:
    """The buckets, by hand."""
    buckets = points // 2
    edges = [i * count // buckets for i in range(buckets)] + [count]
    return (range(a, b) for a, b in pairwise(edges))


VALUES = arrays(np.float32, st.integers(1, 300), elements=st.floats(-100, 100, width=32))


@given(values=VALUES, points=st.integers(2, 40).map(lambda n: 2 * n), holes=st.booleans())
def test_decimation_keeps_the_extremes_of_every_bucket(
    values: np.ndarray, points: int, holes: bool
) -> None:
    if holes:
        values[::3] = np.nan
    times = np.arange(len(values), dtype=float)
    kept = decimate(values, points)
    assert len(kept) == len(decimate_times(times, points)) <= max(points, len(kept))
    if len(values) <= points:
        assert np.array_equal(kept, values, equal_nan=True)
        return
    for place, window in enumerate(windows(len(values), points)):
        known = [float(values[i]) for i in window if not np.isnan(values[i])]
        pair = kept[2 * place : 2 * place + 2]
        if known:
            assert sorted(pair.tolist()) == [min(known), max(known)]
            assert known.index(pair[0]) <= known.index(pair[1])
        else:
            assert np.isnan(pair).all()


def test_ranges_numbers_and_samples() -> None:
    times = np.array([0.0, 10.0, 20.0, 30.0])
    assert slice_range(times, 10.0, 20.0) == (0, 4)
    assert slice_range(times, -5.0, 0.0) == (0, 2)
    assert to_json_numbers(np.array([np.inf, np.nan, 1 / 3])) == [None, None, 0.333333]
    assert len(evenly(100_000, 1500)) == 1500
