"""Which changes of a pipeline a run can go on with: columns, names, operators, state."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import Pipeline
from penstock.errors import InputError
from penstock.pipelines.changes import PipelineChange, find_changes
from penstock.pipelines.description import describe
from penstock.pipelines.renames import Renames, find_renames, rename
from penstock.pipelines.stateful import counts, windows

RECORDED = Path(__file__).parents[1] / "recorded"
NAMES = {"raw": "raw", "parsed": "parsed", "parse": "parse", "total": "total"}


def shop(
    columns: str = "id long, shop string, price double",
    names: dict[str, str] | None = None,
    was: dict[str, str] | None = None,
    state: str = "revenue double",
    **options: Any,
) -> Pipeline:
    """Orders that are parsed, and what each shop has earned."""
    name, was = {**NAMES, **(names or {})}, was or {}
    pipeline = Pipeline("shop")
    pipeline.topic(name["raw"], "line string", external=True, was=was.get("raw"))
    pipeline.topic(name["parsed"], columns, was=was.get("parsed"))
    pipeline.topic("revenue", "shop string, revenue double")

    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    def total(batch: pa.RecordBatch, state: Any) -> pa.RecordBatch:
        return batch

    parse.__name__ = name["parse"]
    pipeline.batches(name["raw"], name["parsed"], was=was.get("parse"), **options)(parse)
    pipeline.sliced(
        name["parsed"], "revenue", key="shop", state=state, name=name["total"], was=was.get("total")
    )(total)
    return pipeline


def changed(new: Pipeline, old: Pipeline | None = None) -> list[PipelineChange]:
    stored = json.loads(json.dumps(describe(old or shop())))
    new.check()
    return find_changes(stored, describe(new))


def test_a_nullable_column_in_front_of_state() -> None:
    (change,) = changed(shop("id long, shop string, note string, price double"))
    assert change == PipelineChange(
        what="topic 'parsed' has new columns: note", hint="rows from before have null there"
    )


@pytest.mark.parametrize(
    "columns",
    [
        "id long, shop string, price double, note string not null",
        "id long, shop string",
        "id long, shop string, price float",
        "shop string, id long, price double",
    ],
)
def test_other_columns_are_refused_with_what_to_do(columns: str) -> None:
    (change,) = changed(shop(columns))
    assert change.verdict == "refused"
    assert f"({columns})" in change.what
    assert "must be nullable" in change.hint


def test_state_keeps_its_columns() -> None:
    (change,) = changed(shop(state="revenue double, orders long"))
    assert change.verdict == "refused"
    expected = "columns of its state is 'revenue double, orders long', was 'revenue double'"
    assert expected in change.what
    assert "begins with empty state" in change.hint


@pytest.mark.parametrize("ready", [counts, lambda **how: windows(size_s=60, **how)])
def test_a_ready_function_with_another_sum_is_refused(ready: Any) -> None:
    def pipeline(*sums: str) -> Pipeline:
        made = Pipeline("made")
        made.topic("sales", "shop string, price double, tax double", external=True)
        made.sliced("sales", "totals", name="total")(ready(by="shop", sums=sums))
        return made

    found = changed(pipeline("price", "tax"), pipeline("price"))
    refused = [change for change in found if change.verdict == "refused"]
    assert len(refused) == 1
    assert "columns of its state" in refused[0].what
    assert "topic 'totals' has new columns" in " ".join(change.what for change in found)


def test_declared_names_move_everything() -> None:
    names = {"raw": "lines", "parsed": "orders", "parse": "read", "total": "sum"}
    new = shop(names=names, was=NAMES)
    stored = describe(shop())
    assert find_renames(stored, describe(new)) == Renames(
        topics={"raw": "lines", "parsed": "orders"}, operators={"parse": "read", "total": "sum"}
    )
    found = changed(new)
    assert [change.verdict for change in found] == ["compatible"] * 4
    assert [change.what for change in found] == [
        "topic 'raw' is now 'lines'",
        "topic 'parsed' is now 'orders'",
        "operator 'parse' is now 'read'",
        "operator 'total' is now 'sum'",
    ]
    # once it is carried out, the declaration may stay or go
    after = rename(stored, find_renames(stored, describe(new)))
    assert find_changes(after, describe(new)) == []
    assert find_changes(after, describe(shop(names=names))) == []


def test_a_name_that_is_not_declared() -> None:
    found = changed(shop(names={"parsed": "orders"}))
    refused = {change.what for change in found if change.verdict == "refused"}
    assert any("'parse': writes is 'orders', was 'parsed'" in what for what in refused)
    hints = " ".join(change.hint for change in found if change.verdict == "refused")
    assert "was=OLD_NAME" in hints


def test_a_removed_operator_has_to_be_declared() -> None:
    new = shop()
    del new.operators["total"], new.declared["revenue"]
    found = {change.what: change for change in changed(new)}
    change = found["operator 'total' was removed"]
    assert change.verdict == "needs a declaration"
    assert "--allow-removal total" in change.hint
    assert "was='total'" in change.hint
    assert found["topic 'revenue' was removed"].is_compatible


def test_a_new_operator_is_welcome() -> None:
    new = shop()
    new.topic("large", "id long, shop string, price double")

    @new.batches("parsed", "large")
    def large(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    assert {change.verdict for change in changed(new)} == {"compatible"}


def test_the_topic_for_failed_rows_follows_its_operator() -> None:
    old = shop(on_error="dead-letter")
    new = shop(names={"parse": "read"}, was={"parse": "parse"}, on_error="dead-letter")
    found = find_renames(describe(old), describe(new))
    assert found.topics == {"parse-errors": "read-errors"}
    assert all(change.is_compatible for change in changed(new, old))


@pytest.mark.parametrize(
    ("names", "was", "problem"),
    [
        ({}, {"parsed": "parsed"}, "parsed.was: is its own name"),
        ({}, {"parsed": "raw"}, "parsed.was: there is still topic 'raw'"),
        ({}, {"parse": "total"}, "parse.was: there is still operator 'total'"),
        ({}, {"parsed": "x", "raw": "x"}, "says the same: was='x'"),
    ],
)
def test_old_names_are_free_and_claimed_once(
    names: dict[str, str], was: dict[str, str], problem: str
) -> None:
    with pytest.raises(InputError) as error:
        shop(names=names, was=was).check()
    assert problem in str(error.value)


def test_a_description_of_version_1_is_read() -> None:
    old = json.loads((RECORDED / "pipeline-v1.json").read_text())
    assert old["version"] == 1
    found = find_changes(old, describe(shop("id long, shop string, price double, note string")))
    # digests of functions differ from one version of Python to the next
    assert [change.what for change in found if "function" not in change.what] == [
        "topic 'parsed' has new columns: note"
    ]
