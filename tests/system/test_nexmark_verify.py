"""Nexmark queries on Spark, rescaled on the way, against DuckDB; and what a verdict says."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.cli.main import main
from penstock.lab.nexmark_verify import CHANGES, VerifyResult, VerifySpec, is_verified, verify
from penstock.nexmark.truths import RowDifference
from penstock.reports.nexmark_text import verification_json, verification_text

#: Events per second of event time: so few that windows close and sessions split.
CASES = {
    "q1": VerifySpec(query="q1", events=20_000, rescale=True),
    "q2": VerifySpec(query="q2", variant="reference", events=60_000, rescale=True),
    "q3": VerifySpec(query="q3", events=20_000, rate=100, rescale=True),
    "q5": VerifySpec(query="q5", variant="reference", events=20_000, rate=200, rescale=True),
    "q8": VerifySpec(query="q8", events=20_000, rate=400, rescale=True),
    "q11": VerifySpec(query="q11", variant="reference", events=20_000, rate=100, rescale=True),
}
CASES |= {f"{name}-chains": replace(CASES[name], has_chains=True) for name in ("q1", "q3", "q11")}


@pytest.mark.spark
@pytest.mark.parametrize("spec", CASES.values(), ids=CASES)
def test_a_rescaled_query_gives_what_duckdb_says(
    spec: VerifySpec, spark: SparkSession, tmp_path: Path
) -> None:
    told: list[float] = []
    seen = verify(spec, spark, tmp_path / "run", told.append)
    assert seen.is_right, verification_text(spec, seen)
    assert seen.rows > 15
    # behind an operator that tells little, a change may find no rows, and then there is no batch
    busy = {name: n for name, n in seen.changes.items() if name not in ("largest", "sink")}
    assert min(busy.values()) >= CHANGES - 1, seen.changes
    assert min(seen.changes.values()) >= 1, seen.changes
    assert told == sorted(told)


def made(missing: int = 0, extra: int = 0, late: int = 0, changes: int = CHANGES) -> VerifyResult:
    row = pa.table({"auction": [7]})
    return VerifyResult(
        rows=100,
        difference=RowDifference(
            missing=row.slice(0, missing),
            extra=row.slice(0, extra),
        ),
        late=late,
        changes={"mapper": CHANGES, "sink": changes},
    )


@pytest.mark.parametrize(
    ("seen", "enough"),
    [
        (made(), True),
        (made(missing=1), False),
        (made(extra=1), False),
        (made(late=1), False),
        (made(changes=CHANGES - 2), False),
    ],
)
def test_only_equal_rows_and_real_changes_are_enough(seen: VerifyResult, enough: bool) -> None:
    assert is_verified(CASES["q1"], seen) is enough


def test_rows_that_differ_are_shown() -> None:
    page = verification_text(CASES["q1"], made(missing=1, extra=1))
    assert "NOT EQUAL" in page
    assert "missing: {'auction': 7}" in page
    assert "extra: {'auction': 7}" in page
    told = verification_json(CASES["q1"], made(missing=1))
    assert (told["missing"], told["extra"], told["equal"]) == (1, 0, False)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--query", "q4", "--events", "10"], "--query: unknown query 'q4'"),
        (["--query", "q1", "--events", "0"], "--events: must be at least 1, got 0"),
        (["--query", "q1", "--events", "10", "--rate", "0"], "rate: must be from"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    given: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nexmark", "verify", *given]) == 2
    assert words in capsys.readouterr().err
