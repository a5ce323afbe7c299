"""Every query in both variants against DuckDB over the same events, however batches are cut."""

from collections import Counter
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from tests.pipelines.nexmark.in_memory import Ran, run
from tests.pipelines.nexmark.plain import plain_columns

from penstock.pipelines.nexmark.queries import QUERIES
from penstock.pipelines.nexmark.queries.parts import Truth, Variant
from penstock.pipelines.nexmark.setting import Setting
from penstock.pipelines.nexmark.times import FixedRate
from penstock.pipelines.nexmark.truths import events_of, true_rows

EVENTS = 20_000
#: Events per second of event time: so slow that windows close, sessions end, and some wait in vain.
RATES = {"q1": 10_000, "q2": 10_000, "q3": 10, "q5": 50, "q8": 400, "q11": 100}
CASES = [(query, variant) for query in QUERIES for variant in ("thesis", "reference")]
#: Rows of a batch, and whether an empty one comes last.
CUTS = [pytest.param(433, True, id="small batches"), pytest.param(1009, False, id="large batches")]

every_case = pytest.mark.parametrize(("query", "variant"), CASES)


def setting_of(query: str, variant: Variant) -> Setting:
    rate = 400 if (query, variant) == ("q5", "reference") else RATES[query]
    return Setting(hot=variant == "reference", clock=FixedRate(rate))


@cache
def events(setting: Setting) -> dict[str, pa.Table]:
    return events_of(EVENTS, setting)


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*plain_columns(table).values(), strict=True))


def ran(query: str, variant: Variant, rows: int, last: bool) -> tuple[Ran, pa.Table]:
    """What came out, and what should have."""
    setting = setting_of(query, variant)
    pipeline = QUERIES[query].build(variant, setting)
    found = run(pipeline, events(setting), rows, last=last)
    truth: Truth = QUERIES[query].TRUTHS[variant]
    closed = found.closed[truth.closed_by] if truth.closed_by else None
    return found, true_rows(truth, events(setting), closed)


@every_case
@pytest.mark.parametrize(("rows", "last"), CUTS)
def test_a_query_gives_what_is_true(query: str, variant: Variant, rows: int, last: bool) -> None:
    found, true = ran(query, variant, rows, last)
    assert found.topics["out"].column_names == true.column_names
    assert counted(found.topics["out"]) == counted(true)
    assert len(true) > 15
    assert not any(found.late.values())
