"""Trying an operator on a few rows."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.factories import COLUMNS, moment, operator, shop, source

from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import EVENT

ROWS = [{"id": 1, "amount": 7.0}, {"id": 2, "amount": 107.0}]


def test_a_batch_operator_needs_nothing_but_rows() -> None:
    large = shop().operators["large"]
    assert large.try_rows(ROWS) == [ROWS[1]]
    assert large.try_rows(pa.Table.from_pylist(ROWS)) == [ROWS[1]]
    assert large.try_rows([]) == []


def test_values_take_the_declared_types() -> None:
    def types(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"types": [str(field.type) for field in batch.schema]}

    assert operator(types, "types string").try_rows([{"id": 1, "amount": 1}]) == [
        {"types": "int64"},
        {"types": "double"},
    ]


def test_missing_values_are_null_and_stamps_are_shown_if_they_were_given() -> None:
    ids = shop().operators["ids"]
    assert ids.try_rows([{}]) == [{"id": None}]
    assert ids.try_rows([{"id": 1, EVENT: moment(5)}]) == [{"id": 1, EVENT: moment(5)}]


def test_it_is_called_with_chunks_and_its_resource_is_closed() -> None:
    log: list[Any] = []

    class Model:
        def close(self) -> None:
            log.append("closed")

    def count(batch: pa.RecordBatch, model: Model) -> dict[str, Any]:
        log.append(batch.num_rows)
        return {"n": [batch.num_rows]}

    counting = operator(count, "n long", resource=Model, chunk_rows=2)
    assert counting.try_rows(ROWS + ROWS[:1]) == [{"n": 2}, {"n": 1}]
    assert log == [2, 1, "closed"]


def test_another_schema_can_be_told() -> None:
    pipeline = Pipeline("p")
    pipeline.topic("out", "n long")
    pipeline.ingest(writes="raw")(abs)

    @pipeline.batches(reads="raw", writes="out")
    def widen(batch: pa.RecordBatch) -> dict[str, Any]:
        return {"n": batch["n"]}

    assert widen.try_rows([{"n": 7}], schema="n int") == [{"n": 7}]
    assert widen.try_rows([{"n": 7}], schema=pa.schema({"n": pa.int8()})) == [{"n": 7}]
    assert widen.try_rows([{"n": 7}]) == [{"n": 7}]
    with pytest.raises(InputError, match="no rows to derive it from"):
        widen.try_rows([])
    with pytest.raises(InputError, match="cannot be derived from the rows"):
        widen.try_rows([{"n": 7}, {"n": "seven"}])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"id": 1, "amout": 2.0}, "there is no column 'amout'"),
        ({"id": "x"}, "column 'id': expected long, found string"),
        ({"id": 1.5}, "column 'id': expected long, found double"),
    ],
)
def test_rows_that_do_not_fit_are_the_callers_mistake(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as wrong:
        shop().operators["large"].try_rows([row])
    assert wrong.value.field == "large.try_rows.rows"
    assert problem in wrong.value.problem


class Frame:
    """As much of a frame as it takes."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self.table


class Spark:
    """As much of a session as it takes."""

    createDataFrame = staticmethod(Frame)  # noqa: N815


def test_a_frame_operator_sees_the_stamps_and_uses_the_callers_session() -> None:
    seen = []
    pipeline = source()

    @pipeline.operator(reads="orders", writes="large")
    def large(frame: Any) -> Any:
        seen.append(frame.table.column_names)
        return Frame(frame.table.filter(pc.field("amount") > 100))

    session: Any = Spark()
    assert large.try_rows(ROWS, spark=session) == [ROWS[1]]
    assert seen == [["id", "amount", EVENT]]
    stamped = [row | {EVENT: moment(1)} for row in ROWS]
    assert large.try_rows(stamped, spark=session) == [stamped[1]]


class AnalysisException(Exception):  # noqa: N818
    """As Spark calls it."""


def test_a_frame_operator_with_a_wrong_column_is_answered_as_in_a_run() -> None:
    pipeline = source()
    pipeline.topic("named", "id long, total double")

    @pipeline.operator(reads="orders", writes="named")
    def misspells(frame: Any) -> Any:
        return Frame(frame.table.select(["id", "amount"]))

    @pipeline.operator(reads="orders", writes="named")
    def looks(frame: Any) -> Any:
        raise AnalysisException("[UNRESOLVED_COLUMN] `amuont`\nplan")

    session: Any = Spark()
    with pytest.raises(InputError, match="misspells: its rows do not fit topic named: column"):
        misspells.try_rows(ROWS, spark=session)
    with pytest.raises(InputError, match=r"looks: \[UNRESOLVED_COLUMN\] `amuont`$"):
        looks.try_rows(ROWS, spark=session)


def test_a_frame_operator_must_return_a_frame() -> None:
    pipeline = source()

    @pipeline.operator(reads="orders", writes="large")
    def forgets(frame: Any) -> None:
        frame.toArrow()

    session: Any = Spark()
    with pytest.raises(InputError, match="forgets: must return a frame, but returned NoneType"):
        forgets.try_rows(ROWS, spark=session)


def test_what_reads_or_writes_outside_cannot_be_tried() -> None:
    pipeline = Pipeline("p")
    pipeline.topic("in", COLUMNS, external=True)
    with pytest.raises(InputError, match="is an egress"):
        pipeline.egress(reads="in")(abs).try_rows(ROWS)
