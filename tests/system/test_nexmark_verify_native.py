"""Verifying queries whose state is Spark's own: variants, Spark's watermark, changes that stop."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.lab.nexmark_verify import VerifyResult, VerifySpec, is_verified, verify
from penstock.nexmark.truths import RowDifference
from penstock.reports.nexmark_text import verification_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NONE = RowDifference(missing=pa.table({"a": []}), extra=pa.table({"a": []}))


@pytest.mark.parametrize(
    ("query", "variant", "told"),
    [
        ("q7", "thesis", "variant: q7 has no variant 'thesis'\nhint: it has reference only"),
        ("q4", None, "--query: unknown query 'q4'"),
    ],
)
def test_what_nobody_can_verify_is_refused(query: str, variant: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        VerifySpec(query=query, events=1, variant=variant).check()  # type: ignore[arg-type]


def test_the_variant_that_is_meant() -> None:
    for query, variant, hot in (("q1", "thesis", False), ("q20", "reference", True)):
        spec = VerifySpec(query=query, events=1)
        spec.check()
        assert (spec.query_variant, spec.setting.hot) == (variant, hot)


def test_who_had_too_few_changes_is_told_what_to_do() -> None:
    spec = VerifySpec(query="q7", events=9, rescale=True)
    seen = VerifyResult(rows=0, difference=NONE, late=0, changes={"window": 4, "sink": 0})
    assert not is_verified(spec, seen)
    _, _, hint = verification_text(spec, seen).splitlines()
    assert hint == (
        "  too few changes: sink was rescaled 0 times, at least 3 required;"
        " use more --events, because an operator without rows runs no batches"
    )
    assert len(verification_text(VerifySpec(query="q7", events=9), seen).splitlines()) == 2


@pytest.mark.spark
@pytest.mark.slow
def test_windows_of_spark_are_verified_while_they_are_rescaled(
    spark: "SparkSession", tmp_path: Path
) -> None:
    spec = VerifySpec(query="q7", events=6000, rate=50.0, rescale=True)
    seen = verify(spec, spark, tmp_path / "run", lambda _: None)
    assert seen.is_right, verification_text(spec, seen)
    # of twelve windows all but those that the last batches might have closed
    assert 8 <= seen.rows < 13
    assert seen.changes["window"] >= 3
