"""Claims: read, judged, and refused where they cannot be meant."""

from typing import Any

import pytest

from penstock.errors import InputError
from penstock.lab.comparison.measures import measure
from penstock.lab.papers.claims import ClaimAnswer, judge_claim, parse_claim
from penstock.lab.papers.printed_tables import count_ordered_pairs, parse_printed_table

CELLS = {"a": None, "b": None, "c": None}


def runs(*values: float) -> list[dict[str, Any]]:
    return [{"x": {"avg": value}, "none": None} for value in values]


RESULTS = {
    "a": runs(1.0, 1.1, 0.9, 1.05),
    "b": runs(2.0, 2.1, 1.9, 2.2),
    "c": runs(2.1, 1.9, 2.2, 2.0),
}


def answer(**fields: Any) -> ClaimAnswer:
    claim = parse_claim({"id": "x", "where": "y", "says": "z", "measure": "x.avg"} | fields, CELLS)
    return judge_claim(claim, RESULTS).answer


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"order": ["b > a"]}, ClaimAnswer.YES, id="clearly more"),
        pytest.param({"order": ["a < b", "a < c"]}, ClaimAnswer.YES, id="both must hold"),
        pytest.param({"order": ["a > b"]}, ClaimAnswer.NO, id="clearly the other way round"),
        pytest.param({"order": ["b > c"]}, ClaimAnswer.NO, id="the same within a hundredth"),
        pytest.param({"order": ["b >= c"]}, ClaimAnswer.YES, id="a near tie will do"),
        pytest.param({"rising": ["a", "b", "c"]}, ClaimAnswer.YES, id="rising with a tie"),
        pytest.param({"falling": ["a", "b"]}, ClaimAnswer.NO, id="not falling"),
        pytest.param({"falling": ["c", "b", "a"]}, ClaimAnswer.YES, id="falling"),
        pytest.param(
            {"number": {"cell": "a", "band": [0.9, 1.1]}}, ClaimAnswer.YES, id="in the band"
        ),
        pytest.param(
            {"number": {"cell": "b", "band": [0.9, 1.1]}}, ClaimAnswer.NO, id="outside it"
        ),
    ],
)
def test_verdicts(fields: dict[str, Any], expected: ClaimAnswer) -> None:
    assert answer(**fields) is expected


def test_noise_decides_nothing() -> None:
    noisy = {"a": runs(1, 9, 2, 8), "b": runs(8, 3, 7, 5)}
    claim = parse_claim(
        {"id": "x", "where": "y", "says": "z", "measure": "x.avg", "order": ["b > a"]}, CELLS
    )
    assert judge_claim(claim, noisy).answer is ClaimAnswer.UNDECIDED


def test_several_checks_must_all_hold() -> None:
    checks = [
        {"measure": "x.avg", "order": ["b > a"]},
        {"measure": "x.avg", "number": {"cell": "a", "band": [5, 6]}},
    ]
    claim = parse_claim({"id": "x", "where": "y", "says": "z", "checks": checks}, CELLS)
    assert judge_claim(claim, RESULTS).answer is ClaimAnswer.NO


def test_a_verdict_tells_what_was_measured_and_without_the_cause() -> None:
    fields = {"order": ["b > a"], "cause": {"cell_without": "c", "says": "off"}}
    claim = parse_claim(
        {"id": "x", "where": "y", "says": "z", "measure": "x.avg / 2"} | fields, CELLS
    )
    verdict = judge_claim(claim, RESULTS)
    assert "b 1.0 [" in verdict.measured
    assert "a 0.506 [" in verdict.measured
    assert verdict.without.startswith("c: 1.0 [")


def test_an_unknown_measure_decides_nothing_and_is_not_zero() -> None:
    claim = parse_claim(
        {
            "id": "x",
            "where": "y",
            "says": "z",
            "measure": "none",
            "number": {"cell": "a", "band": [0, 1]},
        },
        CELLS,
    )
    verdict = judge_claim(claim, RESULTS)
    assert verdict.answer is ClaimAnswer.UNDECIDED
    assert verdict.measured == "none is unknown in 4 of 4 runs of a"


def test_what_cannot_be_decided_says_why() -> None:
    claim = parse_claim({"id": "x", "where": "y", "says": "z", "undecidable": "no crash"}, CELLS)
    assert judge_claim(claim, {}).answer is ClaimAnswer.UNDECIDED


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"measure": "x", "order": ["a > d"]}, "there is no cell 'd'"),
        ({"measure": "x", "order": ["a ~ b"]}, "must be 'one > other'"),
        ({"measure": "open('x')", "order": ["a > b"]}, "cannot be read"),
        ({"measure": "x +", "order": ["a > b"]}, "cannot be read"),
        ({}, "nothing to check"),
        ({"mesure": "x"}, "unknown field"),
    ],
)
def test_a_claim_that_cannot_be_meant_is_refused(fields: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse_claim({"id": "i", "where": "w", "says": "s"} | fields, CELLS)


def test_measures_are_paths_and_arithmetic() -> None:
    result = {"a": {"b": 3}, "c": 4, "none": None}
    assert measure("a.b + c * 2 - 1 / 2")(result) == 10.5
    assert measure("none + 1")(result) is None
    assert measure("c / 0")(result) is None
    with pytest.raises(InputError, match=r"there is no 'a\.z'"):
        measure("a.z")(result)


def test_ordered_pairs_leave_near_ties_out() -> None:
    data = {
        "columns": ["x.avg"],
        "main": ["x.avg"],
        "groups": {"t": {"a": [10], "b": [20], "c": [21]}},
    }
    printed = parse_printed_table(data, CELLS)
    assert count_ordered_pairs(printed, RESULTS, ["x.avg"]) == (2, 2)
    with pytest.raises(InputError, match="must be a cell with 1 figures"):
        parse_printed_table(data | {"groups": {"t": {"z": [1]}}}, CELLS)
