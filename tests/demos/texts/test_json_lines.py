"""JSON as Python's own reader and writer see it."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.demos.texts.json_lines import from_json, to_json
from penstock.errors import InputError

# of the signs that JSON must escape, these are the ones that occur in texts
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cs", "Cc")), st.sampled_from(["\n", "\t", "\r", '"'])
    )
)
ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXT), min_size=1, max_size=8)
FIELDS = pa.schema({"id": pa.int64(), "text": pa.string()})


def columns(rows: list[tuple[int, str]]) -> dict[str, pa.Array]:
    ids, texts = zip(*rows, strict=True)
    return {"id": pa.array(ids, pa.int64()), "text": pa.array(texts, pa.string())}


@given(ROWS)
def test_what_is_written_python_can_read(rows: list[tuple[int, str]]) -> None:
    found = [json.loads(line) for line in to_json(columns(rows)).to_pylist()]
    assert found == [{"id": number, "text": text} for number, text in rows]


@given(ROWS)
def test_what_python_writes_can_be_read(rows: list[tuple[int, str]]) -> None:
    lines = [json.dumps({"text": text, "more": [1], "id": number}) for number, text in rows]
    found = from_json(pa.array(lines), FIELDS)
    assert found.to_pylist() == [{"id": number, "text": text} for number, text in rows]


def test_many_lines_stay_in_order() -> None:
    rows = [(number, "x" * 50) for number in range(40_000)]
    assert from_json(to_json(columns(rows)), FIELDS)["id"].to_pylist() == list(range(40_000))


def test_no_lines_are_no_rows() -> None:
    assert from_json(pa.array([], pa.string()), FIELDS).schema == FIELDS


@pytest.mark.parametrize("wrong", ["nonsense", '{"id": "x"}', "[]", "", '{"id": 1} {"id": 2}'])
def test_a_line_that_is_not_one_object_is_told(wrong: str) -> None:
    with pytest.raises(InputError, match="line"):
        from_json(pa.array(['{"id": 1, "text": "fine"}', wrong]), FIELDS)
