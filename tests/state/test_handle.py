"""A state against a dictionary: any puts, gets, deletes and timers, over any batches and merges."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.state.factories import KEY, VALUES, Disk, put
from tests.state.model import Key, Model, name

from penstock.errors import InputError
from penstock.state.check import check
from penstock.state.handle import State
from penstock.topics import hashing
from penstock.topics.ddl import parse_fields

#: Hashes that collide: all of them, and most of them.
HASHES = {
    "real": hashing.hash_keys,
    "few": lambda columns: hashing.hash_keys(columns) % np.uint64(3) << np.uint64(62),
    "one": lambda columns: hashing.hash_keys(columns) * np.uint64(0) + np.uint64(2**64 - 1),
}
KEYS: dict[str, st.SearchStrategy[Key]] = {
    "a long": st.tuples(st.sampled_from([None, 0, 1, -1, 2**62, 7])),
    "a string": st.tuples(st.sampled_from([None, "", "a", "b", "ab", "a much longer key"])),
    "a double": st.tuples(st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5, -1.5])),
    "a string, b int": st.tuples(st.sampled_from(["", "x", None]), st.sampled_from([0, 1, None])),
}
TIMES = st.none() | st.integers(0, 60)
VALUE = st.tuples(st.none() | st.integers(0, 9), st.none() | st.sampled_from(["", "long " * 9]))


@st.composite
def batches(draw: st.DrawFn, keys: st.SearchStrategy[Key]) -> list[dict[str, Any]]:
    """What happens in some batches, and what is merged beside them."""
    some = st.lists(keys, max_size=6)
    step = st.one_of(
        st.tuples(st.just("put"), st.lists(st.tuples(keys, VALUE, TIMES), max_size=6)),
        st.tuples(st.just("plain_put"), st.lists(st.tuples(keys, VALUE), max_size=6)),
        st.tuples(st.just("delete"), some),
        st.tuples(st.just("get"), some),
        st.tuples(st.sampled_from(["due", "is_due", "scan"]), st.none()),
    )
    one = st.fixed_dictionaries(
        {
            "steps": st.lists(step, max_size=6),
            "ahead": st.sampled_from([0, 0, 1, 5, 20]),
            "known": st.booleans(),
            "now": st.none() | st.integers(0, 40),
            "merge": st.tuples(st.sampled_from([0, 0, 1, 2, 99]), st.integers(1, 4)),
            "reopen": st.booleans(),
        }
    )
    return draw(st.lists(one, min_size=1, max_size=6))


@settings(max_examples=25)
@given(data=st.data())
def test_like_a_dictionary(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(KEYS)), "key")
    collide = data.draw(st.sampled_from(list(HASHES)), "hash")
    _compare(tmp_path_factory.mktemp("counts"), kind, collide, data)


@pytest.mark.slow
@settings(max_examples=50)
@given(data=st.data())
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("collide", HASHES)
def test_like_a_dictionary_over_and_over(
    tmp_path_factory: pytest.TempPathFactory, kind: str, collide: str, data: st.DataObject
) -> None:
    _compare(tmp_path_factory.mktemp("counts"), kind, collide, data)


def _compare(directory: Path, kind: str, collide: str, data: st.DataObject) -> None:
    ttl_us = data.draw(st.sampled_from([None, 5, 20]), "ttl")
    chunk = data.draw(st.sampled_from([2, 1 << 16]), "rows in a chunk")
    key = pa.schema(parse_fields(kind))
    values = pa.schema(parse_fields("n long, text string"))
    disk = Disk(directory, key, values, ttl_us=ttl_us)
    model = Model(ttl_us)
    with (
        mock.patch("penstock.state.handle.hash_keys", HASHES[collide]),
        mock.patch("penstock.state.check.hash_keys", HASHES[collide]),
        mock.patch("penstock.state.state_files.MAX_CHUNK_ROWS", chunk),
    ):
        for batch in data.draw(batches(KEYS[kind]), "batches"):
            watermark = model.watermark
            if watermark is not None or batch["known"]:
                watermark = (watermark or 0) + batch["ahead"]
            model.begin(watermark, batch["now"])
            both = Both(disk.state(watermark=watermark, now=batch["now"]), model, key)
            for what, given_ in batch["steps"]:
                getattr(both, what)(given_)
            state_files, (start, size) = disk.version.of(0), batch["merge"]
            disk.commit(
                both.state, merge=[state_files[start : start + size]] if state_files[start:] else []
            )
            assert check(disk.directory, disk.layout, disk.version) == []
            if batch["reopen"]:
                disk.reopen()
        model.begin(model.watermark, None)
        Both(disk.state(watermark=model.watermark), model, key).scan(None)


class Both:
    """Does the same with a state and with its model, and compares."""

    def __init__(self, state: State, model: Model, key: pa.Schema) -> None:
        self.state, self.model, self.key = state, model, key

    def put(self, rows: list[tuple[Key, Any, int | None]]) -> None:
        timers = pa.array([timer for *_, timer in rows], pa.int64())
        self.state.put(self._rows([(key, values) for key, values, _ in rows]), timers)
        for key, values, timer in rows:
            self.model.put(key, values, timer)

    def plain_put(self, rows: list[tuple[Key, Any]]) -> None:
        self.state.put(self._rows(rows))
        for key, values in rows:
            self.model.put(key, values, None)

    def delete(self, keys: list[Key]) -> None:
        self.state.delete(self._keys(keys))
        for key in keys:
            self.model.delete(key)

    def get(self, keys: list[Key]) -> None:
        found = self.state.get(self._keys(keys)).to_pylist()
        expected = [self.model.get(key) for key in keys]
        assert [row.pop("_found") for row in found] == [values is not None for values in expected]
        assert [tuple(row.values()) for row in found] == [v or (None, None) for v in expected]

    def due(self, _: None) -> None:
        found = [tuple(row.values()) for row in self.state.due().to_pylist()]
        told = [(*row.key, *row.values, row.timer) for row in self.model.due()]
        assert [row[-1] for row in found] == [row[-1] for row in told]
        assert sorted(map(_text, found)) == sorted(map(_text, told))

    def is_due(self, _: None) -> None:
        assert self.state.is_due() == self.model.is_due()

    def scan(self, _: None) -> None:
        rows = [tuple(row.values()) for part in self.state.scan() for row in part.to_pylist()]
        found = {name(row[: len(self.key)]): row[len(self.key) :] for row in rows}
        assert len(found) == len(rows) and found == self.model.all()

    def _keys(self, keys: list[Key]) -> dict[str, pa.Array]:
        return {
            field.name: pa.array([key[n] for key in keys], field.type)
            for n, field in enumerate(self.key)
        }

    def _rows(self, rows: list[tuple[Key, Any]]) -> dict[str, pa.Array]:
        numbers = pa.array([values[0] for _, values in rows], pa.int64())
        texts = pa.array([values[1] for _, values in rows], pa.string())
        return self._keys([key for key, _ in rows]) | {"n": numbers, "text": texts}


def _text(row: tuple[Any, ...]) -> str:
    return repr([part + 0.0 if isinstance(part, float) else part for part in row])


def words(batch: pa.RecordBatch) -> list[str]:
    """The words of some rows."""
    found: list[str] = batch.column("word").to_pylist()
    return found


def test_keys_may_come_as_a_batch_a_dictionary_or_one_array() -> None:
    state = State.open(KEY, VALUES)
    state.put(pa.table({"n": [1, 2], "word": ["a", "b"]}))  # in any order
    for keys in (
        pa.record_batch({"word": ["b", "c"]}),
        pa.table({"word": ["b", "c"]}),
        {"word": ["b", "c"]},
        {"word": np.array(["b", "c"])},
        pa.array(["b", "c"]),
        pa.chunked_array([["b"], ["c"]]),
    ):
        found = state.get(keys)
        assert found.to_pydict() == {"n": [2, None], "_found": [True, False]}
        assert found.schema.names == ["n", "_found"]


def test_a_state_of_keys_alone() -> None:
    state = State.open(KEY, pa.schema([]))
    state.put(pa.array(["a", "a", "b"]))
    state.delete(pa.array(["b"]))
    assert state.get(pa.array(["a", "b"])).to_pydict() == {"_found": [True, False]}
    changes = state.changes()
    assert changes is not None and len(changes) == 1


def test_nothing_was_changed() -> None:
    state = State.open(KEY, VALUES)
    assert state.changes() is None
    state.put({"word": [], "n": []})
    state.delete(pa.array([], pa.string()))
    assert state.changes() is None and list(state.scan()) == []
    assert state.get(pa.array([], pa.string())).num_rows == state.due().num_rows == 0


def test_what_was_put_and_deleted_in_the_first_batch_leaves_nothing() -> None:
    state = State.open(KEY, VALUES)
    state.put({"word": ["a"], "n": [1]})
    state.delete(pa.array(["a"]))
    assert state.changes() is None


def test_late_rows_are_kept_for_the_engine() -> None:
    state = State.open(KEY, VALUES)
    for size in (2, 0, 1):
        state.late(pa.record_batch({"word": ["x"] * size}))
    assert [batch.num_rows for batch in state.late_rows] == [2, 1]


def test_many_small_puts_are_few_levels() -> None:
    state = State.open(KEY, VALUES)
    for number in range(300):
        state.put({"word": [f"{number}"], "n": [number]})
    assert len(state._mine) < 10
    assert state.get(pa.array([f"{n}" for n in range(300)]))["n"].to_pylist() == list(range(300))


def test_due_rows_come_by_timer_with_their_values() -> None:
    state = State.open(KEY, VALUES, watermark=30)
    timers = pa.array([30, 10, 31, None, 20], pa.int64())
    state.put({"word": list("abcde"), "n": [1, 2, 3, 4, 5]}, timers)
    told = state.due().to_pydict()
    assert told == {"word": ["b", "e", "a"], "n": [2, 5, 1], "_timer": [10, 20, 30]}


def test_timers_may_be_timestamps_of_any_unit() -> None:
    state = State.open(KEY, VALUES, watermark=1_500_000)
    for number, unit in enumerate(["s", "ms", "us", "ns"]):
        at = pa.array([1, 2], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
        state.put({"word": [f"{number}", f"late {number}"], "n": [1, 2]}, at)
    told = state.due()
    assert sorted(words(told)) == ["0", "1", "2", "3"]
    assert set(told["_timer"].to_pylist()) == {1_000_000}


def test_a_put_without_a_timer_forgets_the_earlier_one(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1, "b": 2}, [10, 10]), watermark=5)
    disk.batch(put({"a": 3}), watermark=6)
    assert words(disk.batch(State.due, watermark=10)) == ["b"]


def test_a_timer_is_told_once_also_when_the_watermark_stands_still(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1, "b": 2}, [10, 12]), watermark=5)
    told = [words(disk.batch(State.due, watermark)) for watermark in (5, 10, 10, 11, 12, 12, 99)]
    assert told == [[], ["a"], [], [], ["b"], [], []]


def test_a_timer_that_has_passed_when_it_is_set_is_told_in_the_next_batch(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1, "b": 2}, [3, 9]), watermark=5)
    told = [words(disk.batch(State.due, watermark)) for watermark in (5, 5, 8, 9, 9)]
    assert told == [["a"], [], [], ["b"], []]
    assert {row["word"] for row in disk.rows()} == {"a", "b"}  # told is not forgotten


def test_a_timer_that_has_passed_is_told_at_once_if_asked(tmp_path: Path) -> None:
    disk = Disk(tmp_path)

    def work(state: State) -> list[list[str]]:
        put({"a": 1}, [3])(state)
        return [words(state.due()), words(state.due())]

    assert disk.batch(work, watermark=5) == [["a"], []]
    assert words(disk.batch(State.due, watermark=6)) == []


def test_what_this_batch_has_put_or_deleted_is_not_due_any_more(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1, "b": 2, "c": 3}, [10, 10, 10]), watermark=5)

    def work(state: State) -> list[str]:
        assert state.is_due()
        state.delete(pa.array(["a"]))
        put({"b": 4}, [11])(state)
        return words(state.due())

    assert disk.batch(work, watermark=10) == ["c"]
    assert words(disk.batch(State.due, watermark=11)) == ["b"]


def test_a_batch_that_does_not_ask_loses_no_timer(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.batch(put({"a": 1, "b": 2}, [10, 3]), watermark=5)
    for watermark in (20, 20, 30):
        disk.batch(put({"x": 1}), watermark)
    assert words(disk.batch(State.due, watermark=30)) == ["b", "a"]
    assert words(disk.batch(State.due, watermark=40)) == []


def test_timers_survive_merges_and_are_told_once(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    told = []
    for number, watermark in enumerate([1, 1, 4, 4, 9, 9, 30]):
        state = disk.state(watermark=watermark)
        told.append(words(state.due()))
        state.put({"word": [f"{number}"], "n": [0]}, pa.array([3 * number]))
        disk.commit(state, merge=[state_files] if (state_files := disk.version.of(0)) else [])
    # a timer that has passed when it is set waits for the next batch
    assert told == [[], ["0"], ["1"], [], ["2", "3"], [], ["4", "5"]]
    assert len(disk.version.of(0)) == 2


def test_the_index_of_timers_is_used_on_disk(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    numbers = np.random.default_rng(0).permutation(1000)
    disk.batch(put({f"{n}": int(n) for n in numbers}, [int(n) for n in numbers]))
    (layer,) = disk.layers.open(disk.version.of(0))
    assert layer.chunks[0].order is not None
    told = [disk.batch(State.due, at)["n"].to_pylist() for at in (-1, 0, 499, 500, 2000)]
    assert told == [[], [0], [*range(1, 500)], [500], [*range(501, 1000)]]


def test_a_row_lives_so_long_after_its_last_put(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ttl_us=10)
    disk.batch(put({"early": 0}))  # before there is any event time: it does not age
    disk.batch(put({"a": 1, "b": 2}), watermark=100)
    disk.batch(put({"b": 3}), watermark=105)
    there = [
        disk.batch(lambda state: state.get(pa.array(["early", "a", "b"]))["n"].to_pylist(), at)
        for at in (109, 110, 114, 115)
    ]
    assert there == [[0, 1, 3], [0, None, 3], [0, None, 3], [0, None, None]]


def test_a_row_lives_from_the_latest_event_on_if_that_is_known(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ttl_us=10)
    state = disk.state(watermark=100, now=107)
    put({"a": 1})(state)
    disk.commit(state)
    assert [len(disk.batch(lambda s: list(s.scan()), at)) for at in (116, 117)] == [1, 0]


def test_a_row_waits_for_its_timer_beyond_its_time(tmp_path: Path) -> None:
    disk = Disk(tmp_path, ttl_us=10)
    disk.batch(put({"a": 1}, [150]), watermark=100)
    assert disk.batch(lambda state: len(list(state.scan())), watermark=149) == 1
    assert words(disk.batch(State.due, watermark=150)) == ["a"]
    assert disk.batch(lambda state: len(list(state.scan())), watermark=150) == 0


WRONG = {
    "keys: column 'word': expected string, found long": lambda s: s.get(pa.array([1])),
    "keys: column 'word' (string) is missing": lambda s: s.get({"n": [1]}),
    "keys: column 'n' is not expected": lambda s: s.delete({"word": ["a"], "n": [1]}),
    "rows: one array is not enough for 2 columns": lambda s: s.put(pa.array(["a"])),
    "rows: column 'n': expected long, found int": lambda s: s.put(
        {"word": ["a"], "n": pa.array([1], pa.int32())}
    ),
    "rows: column 'n': is no long": lambda s: s.put({"word": ["a"], "n": ["x"]}),
    "rows: the columns differ in length: word 1, n 2": lambda s: s.put(
        {"word": ["a"], "n": [1, 2]}
    ),
    "timers: must be one for each row, got 2 for 1 rows": lambda s: s.put(
        {"word": ["a"], "n": [1]}, pa.array([1, 2])
    ),
    "timers: must be timestamps or microseconds, got string": lambda s: s.put(
        {"word": ["a"], "n": [1]}, pa.array(["x"])
    ),
}


@pytest.mark.parametrize("problem", WRONG)
def test_what_is_wrong_is_named(problem: str) -> None:
    state = State.open(KEY, VALUES)
    with pytest.raises(InputError) as raised:
        WRONG[problem](state)
    assert str(raised.value).startswith(problem)
    assert state.changes() is None


def test_columns_that_must_not_be_null() -> None:
    state = State.open(KEY, pa.schema(parse_fields("n long not null")))
    with pytest.raises(InputError, match="column 'n': must not be null, but is in 1 rows"):
        state.put({"word": ["a", "b"], "n": [1, None]})
    state.put({"word": ["a"], "n": [1]})
    state.delete(pa.array(["a"]))  # a row that is gone has no values, whatever was declared
    assert state.get(pa.array(["a"])).to_pydict() == {"n": [None], "_found": [False]}


@pytest.mark.parametrize(
    ("key", "values", "problem"),
    [
        ("", "n long", "state: has no key"),
        ("a long", "a long", "state.a: occurs twice"),
        ("_timer long", "", "state._timer: is a reserved column of the state"),
        ("a array<long>", "", "state.a: array<long> cannot be a key"),
        ("a struct<b: long>", "", "state.a: struct<b: long> cannot be a key"),
    ],
)
def test_columns_that_no_state_can_have(key: str, values: str, problem: str) -> None:
    schemas = [pa.schema(parse_fields(text) if text else []) for text in (key, values)]
    with pytest.raises(InputError) as raised:
        State.open(*schemas)
    assert str(raised.value).startswith(problem)
