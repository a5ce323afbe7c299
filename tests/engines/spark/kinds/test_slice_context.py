"""What a function learns about its batch: a token of its state, and the offsets of its inputs."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import by_hand
from tests.tools.by_hand import ByHand

from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.pipelines.stateful.try_out import try_batches
from penstock.state.handle import State


def look(inputs: dict[str, pa.RecordBatch], state: State) -> dict[str, Any]:
    """Notes the context of the call, then stores the numbers of the slice."""
    content = tuple(sorted(row["id"] for rows in state.scan() for row in rows.to_pylist()))
    offsets = (dict(state.input_starts), dict(state.input_ends))
    by_hand.CALLS.append((state.slice, state.token, content, *offsets))
    rows = inputs["rows"]
    if rows.num_rows:
        state.put({"id": rows["id"], "n": rows["id"]})
    return {"id": rows["id"], "_event": rows["_event"]}


def pipeline(ttl_s: float | None = None) -> Pipeline:
    pipeline = Pipeline("looks")
    pipeline.topic("rows", "id long, at timestamp", external=True)
    pipeline.topic("all", "id long", external=True)
    pipeline.topic("out", "id long")
    pipeline.sliced(
        ("rows", "all"),
        "out",
        key={"rows": "id"},
        broadcast=("all",),
        state="n long",
        slices=3,
        ttl_s=ttl_s,
        time="at" if ttl_s else "_event",
        max_replicas=5,
    )(look)
    return pipeline


STEP = st.tuples(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 4), st.integers(1, 2))


@settings(max_examples=25)
@given(st.lists(STEP, min_size=2, max_size=10), st.sampled_from([None, 3.0]))
def test_the_same_token_means_the_same_content(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[int], int, int]],
    ttl_s: float | None,
) -> None:
    # after a repeated attempt, a move and a compaction, too
    hand = ByHand(tmp_path_factory.mktemp("tokens") / "run", pipeline(ttl_s), "look")
    by_hand.CALLS.clear()
    ends = {"rows": 0, "all": 0}
    for second, (ids, replicas, attempts) in enumerate(steps):
        if ids:
            hand.put([{"id": n, "at": second * 1_000_000} for n in ids], "rows")
        hand.put([{"id": 0}], "all")
        starts, ends = ends, {"rows": ends["rows"] + len(ids), "all": second + 1}
        before = len(by_hand.CALLS)
        hand.run_to(ends, replicas, attempts=attempts, crash=True)
        calls = by_hand.CALLS[before:]
        # every slice is called, though most have broadcast rows only
        assert {slice for slice, *_ in calls} == {0, 1, 2}
        assert all(call[3:] == (starts, ends) for call in calls)
        if attempts == 2:
            first, second_try = (sorted(calls[n : n + 3]) for n in (0, 3))
            assert first == second_try
    contents: dict[str, Any] = {}
    for _, token, content, *_ in by_hand.CALLS:
        assert contents.setdefault(token, content) == content


def test_an_unchanged_slice_keeps_its_token(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", pipeline(), "look")
    by_hand.CALLS.clear()
    hand.put([{"id": n, "at": 0} for n in range(20)], "rows")
    hand.put([{"id": 0}] * 3, "all")
    hand.run_to({"rows": 20, "all": 1}, 2)
    hand.run_to({"rows": 20, "all": 2}, 3)
    hand.run_to({"rows": 20, "all": 3}, 1)
    tokens = [{call[0]: call[1] for call in by_hand.CALLS[n : n + 3]} for n in (0, 3, 6)]
    assert tokens[0] != tokens[1] == tokens[2]
    assert len(set(tokens[1].values())) == 3


def test_a_try_out_has_tokens_and_offsets_too() -> None:
    by_hand.CALLS.clear()
    slicing = Slicing(keys={"rows": ("id",)}, broadcast=("all",), state="n long", slices=2)
    batches: list[Any] = [
        {"rows": [{"id": 1}, {"id": 2}], "all": [{"id": 0}]},
        {"rows": [], "all": [{"id": 0}, {"id": 0}]},
        {"rows": [{"id": 3}], "all": [{"id": 0}]},
    ]
    try_batches(look, batches, {"rows": "id long", "all": "id long"}, "id long", slicing)
    assert [(call[3]["rows"], call[4]["all"]) for call in by_hand.CALLS] == [
        *[(0, 1)] * 2,
        *[(2, 3)] * 2,
        *[(2, 4)] * 2,
    ]
    contents: dict[str, Any] = {}
    for _, token, content, *_ in by_hand.CALLS:
        assert contents.setdefault(token, content) == content
    second, third = ({call[0]: call[1] for call in by_hand.CALLS[n : n + 2]} for n in (2, 4))
    assert second == third
