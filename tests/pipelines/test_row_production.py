"""Rows from the functions of sources."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.pipelines.row_production import call_make, fitted
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import parse_schema

SCHEMA = parse_schema("id long, at timestamp")
DUE = pa.array([10, 20], TIMESTAMP)


@pytest.mark.parametrize(
    "make",
    [
        lambda first, due: pa.table({"id": [first, first + 1], "at": due}),
        lambda first, due: pa.record_batch({"id": [first, first + 1], "at": due}),
        lambda first, due: {"at": due, "id": pa.array([first, first + 1], pa.int16())},
    ],
)
def test_rows_come_in_many_forms_and_leave_in_one(make: Any) -> None:
    rows = fitted(make, SCHEMA)(7, DUE)
    assert isinstance(rows, pa.Table) and rows.schema.equals(SCHEMA)
    assert rows.column("id").to_pylist() == [7, 8] and rows.column("at").combine_chunks() == DUE


def test_an_error_names_the_function_and_its_line() -> None:
    def broken(first_id: int, due: pa.Array) -> Any:
        return {"id": first_id / 0}

    with pytest.raises(InputError) as wrong:
        call_make(broken, 0, DUE)
    assert wrong.value.field == "broken"
    assert wrong.value.problem == "cannot be made: ZeroDivisionError: division by zero"
    assert wrong.value.where == f"{__file__}:{broken.__code__.co_firstlineno + 1}"


def test_rows_that_do_not_fit_name_the_column() -> None:
    def text(first_id: int, due: pa.Array) -> Any:
        return {"id": ["a", "b"], "at": due}

    with pytest.raises(InputError, match="column 'id': expected long, found string") as wrong:
        fitted(text, SCHEMA)(0, DUE)
    assert wrong.value.where == f"{__file__}:{text.__code__.co_firstlineno}"
