"""What a description holds, and what may change between two."""

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.pipelines.factories import COLUMNS, orders, same, shop

from penstock.errors import InputError
from penstock.pipelines.changes import find_changes
from penstock.pipelines.description import describe, digest
from penstock.pipelines.pipeline import Pipeline


def load_model() -> str:
    return "model"


def test_a_description_is_json_and_says_everything() -> None:
    pipeline = Pipeline("small", objective_s=2.0, summary="orders")
    pipeline.topic("orders", COLUMNS, keep="10 minutes")
    pipeline.topic("prices", "id long", external=True)
    pipeline.produces("orders", arrivals="bursty")(orders)
    pipeline.batches(
        reads="orders", writes="prices", max_replicas=3, resource=load_model, chunk_rows=5
    )(same)
    written = describe(pipeline)
    assert json.loads(json.dumps(written)) == written
    assert written | {"operators": None, "produces": None} == {
        "version": 1,
        "name": "small",
        "summary": "orders",
        "objective_s": 2.0,
        "topics": {
            "orders": {"schema": COLUMNS, "keep": "10 minutes", "external": False},
            "prices": {"schema": "id long", "keep": "read", "external": True},
        },
        "produces": None,
        "operators": None,
    }
    assert written["produces"]["orders"]["arrivals"] == "bursty"
    operator = written["operators"]["same"]
    assert (operator["kind"], operator["reads"], operator["writes"]) == (
        "batch",
        ["orders"],
        "prices",
    )
    assert operator["options"] == {
        "min_replicas": 1,
        "max_replicas": 3,
        "replicas": 1,
        "grouping": "even",
        "timeout_s": None,
        "queue_size": None,
        "dropped_to": None,
        "queue_limit": None,
        "resource": "load_model",
        "chunk_rows": 5,
        "call_timeout_s": None,
        "on_error": "stop",
        "time": None,
    }


def test_columns_that_show_at_the_start_are_null() -> None:
    pipeline = Pipeline("p")
    pipeline.ingest(writes="raw")(abs)
    assert describe(pipeline)["topics"]["raw"]["schema"] is None
    assert describe(pipeline)["operators"]["abs"]["code"] == ""


def test_nothing_changed() -> None:
    assert find_changes(describe(shop()), describe(shop())) == []


Edit = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda d: d["operators"]["large"].update(code="x"), "'large': its function changed"),
        (lambda d: d["operators"]["large"].update(resource_code="x"), "opens its resource"),
        (lambda d: d["operators"]["large"]["options"].update(max_replicas=9), "is 9, was 4"),
        (lambda d: d["operators"]["large"]["options"].update(chunk_rows=1), "is 1, was None"),
        (lambda d: d["topics"]["large"].update(keep="1 hour"), "keep is '1 hour', was 'read'"),
        (lambda d: d["topics"].update(more=d["topics"]["ids"]), "topic 'more' is new"),
        (lambda d: d["topics"].pop("ids"), "topic 'ids' was removed"),
        (lambda d: d["operators"].update(more=d["operators"]["ids"]), "operator 'more' is new"),
        (lambda d: d["produces"]["orders"].update(code="x"), "'orders': its function changed"),
        (lambda d: d["produces"]["orders"].update(arrivals="bursty"), "arrivals is 'bursty'"),
        (lambda d: d["produces"]["orders"].update(share=0.5), "share is 0.5, was 1.0"),
        (lambda d: d["produces"].pop("orders"), "rows of topic 'orders' was removed"),
        (lambda d: d.update(objective_s=3), "objective_s is 3, was None"),
    ],
)
def test_what_a_run_can_go_on_with(edit: Edit, what: str) -> None:
    (change,) = changed(edit)
    assert change.is_compatible and what in change.what


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (lambda d: d.update(name="other"), "called 'other', not 'orders'"),
        (lambda d: d["topics"]["ids"].update(schema="id int"), "columns (id int), not (id long)"),
        (lambda d: d["operators"].pop("ids"), "operator 'ids' was removed"),
        (lambda d: d["operators"]["ids"].update(kind="frame"), "kind is 'frame', was 'batch'"),
        (lambda d: d["operators"]["ids"].update(reads=["orders"]), "was ['large']"),
        (lambda d: d["operators"]["ids"].update(writes="more"), "writes is 'more', was 'ids'"),
    ],
)
def test_what_a_run_cannot_go_on_with(edit: Edit, what: str) -> None:
    (change,) = changed(edit)
    assert not change.is_compatible and what in change.what and change.hint


def changed(edit: Edit) -> list[Any]:
    old = describe(shop())
    new = deepcopy(old)
    edit(new)
    return find_changes(old, new)


def test_columns_that_are_not_known_yet_are_no_change() -> None:
    assert changed(lambda d: d["topics"]["ids"].update(schema=None)) == []


def test_what_does_not_fit_comes_first() -> None:
    def edit(description: dict[str, Any]) -> None:
        description["objective_s"] = 1
        description["operators"]["ids"]["writes"] = "more"

    assert [change.is_compatible for change in changed(edit)] == [False, True]


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(InputError, match="cannot read version 2, only 1"):
        find_changes(describe(shop()), {"version": 2})


def function_of(text: str) -> Any:
    scope: dict[str, Any] = {}
    exec(text, scope)
    return scope["f"]


def test_a_function_is_known_by_what_it_does() -> None:
    text = "def f(x):\n    return [y + 1 for y in x if y in {'a', 'b', 'c'}]"
    assert digest(function_of(text)) == digest(function_of(f"\n\n# moved\n{text}"))
    assert digest(function_of(text)) != digest(function_of(text.replace("1", "2")))
    assert digest(function_of(text)) != digest(function_of(text.replace("'c'", "'d'")))


def test_a_digest_is_the_same_in_every_process() -> None:
    code = (
        "from penstock.pipelines.description import digest\n"
        "def f(x):\n    return x in {'a', 'b', 'c', 'd', 'e'}\n"
        "print(digest(f))"
    )
    run = [sys.executable, "-c", code]
    found = {
        subprocess.run(run, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
