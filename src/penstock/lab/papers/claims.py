"""Claims of papers, and their test against runs.

A claim is about one measure of some cells of an experiment: their order, a rising or falling
sequence, or a band for a value. It is judged over paired seeds: an order holds if the 95 %
interval of the paired difference is entirely on its side. Cells within 10 % of each other are a
near tie, which is accepted in a sequence and for `>=`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from penstock.core.numbers import table_number
from penstock.errors import InputError, nearest
from penstock.lab.comparison.measures import measure
from penstock.lab.comparison.statistics import compute_difference_interval, compute_mean_interval

#: Means closer than this are a near tie.
TIE = 0.10


class ClaimAnswer(StrEnum):
    """The verdict on a claim."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "not decidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One comparison: left > right, or left >= right."""

    left: str
    right: str
    strict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition: links between cells, or a band for one cell or for a ratio."""

    measure: str
    links: tuple[Link, ...] = ()
    cell: str = ""
    #: If set, the band is for the mean of `cell` divided by the mean of this cell.
    over: str = ""
    band: tuple[float, float] | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Return every cell that it uses, once."""
        named = [name for link in self.links for name in (link.left, link.right)]
        return tuple(dict.fromkeys([*named, *filter(None, (self.cell, self.over))]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence of a paper, and its test."""

    id: str
    where: str
    says: str
    checks: tuple[Check, ...] = ()
    #: What the paper printed.
    published: str = ""
    #: Explanation of the answer.
    why: str = ""
    #: A cell with the cause disabled, and what it shows.
    without: str = ""
    without_says: str = ""
    undecidable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim with its answer and the measured values."""

    claim: Claim
    answer: ClaimAnswer
    measured: str
    without: str = ""


Results = Mapping[str, Sequence[Mapping[str, Any]]]


def parse_claim(data: Mapping[str, Any], cells: Mapping[str, Any]) -> Claim:
    """Read a claim from parsed TOML; every cell that it names must exist."""
    known = ("id", "where", "says", "published", "why", "cause", "undecidable", "checks", *_FORMS)
    for key in data:
        if key not in known:
            raise InputError(key, "unknown field of a claim", nearest(key, known))
    for key in ("id", "where", "says"):
        if key not in data:
            raise InputError(key, "missing in a claim")
    parts = data.get("checks", [data] if "measure" in data else [])
    checks = tuple(check for part in parts for check in _parse_checks(part))
    cause = data.get("cause", {})
    claim = Claim(
        id=data["id"],
        where=data["where"],
        says=data["says"],
        checks=checks,
        published=str(data.get("published", "")),
        why=data.get("why", ""),
        without=cause.get("cell_without", ""),
        without_says=cause.get("says", ""),
        undecidable=data.get("undecidable", ""),
    )
    if not checks and not claim.undecidable:
        raise InputError(claim.id, "has nothing to check", "give a measure, or say undecidable")
    named = [cell for check in checks for cell in check.cells]
    for cell in (*named, *([claim.without] if claim.without else [])):
        if cell not in cells:
            raise InputError(claim.id, f"there is no cell {cell!r}", nearest(cell, cells))
    return claim


_FORMS = ("measure", "order", "rising", "falling", "number", "ratio")


def _parse_checks(part: Mapping[str, Any]) -> list[Check]:
    name = part.get("measure", "")
    measure(name)  # raises InputError for an invalid measure
    checks = []
    if "order" in part:
        checks.append(Check(measure=name, links=tuple(_parse_link(text) for text in part["order"])))
    for form in ("rising", "falling"):
        if form in part:
            chain = part[form] if form == "falling" else part[form][::-1]
            links = tuple(Link(left=a, right=b, strict=False) for a, b in pairwise(chain))
            checks.append(Check(measure=name, links=links))
    for form in ("number", "ratio"):
        if form in part:
            low, high = part[form]["band"]
            cell, over = part[form]["cell"], part[form].get("over", "")
            checks.append(Check(measure=name, cell=cell, over=over, band=(float(low), float(high))))
    return checks


def _parse_link(text: str) -> Link:
    for sign, flip, strict in ((">=", 0, 0), ("<=", 1, 0), (">", 0, 1), ("<", 1, 1)):
        left, separator, right = text.partition(f" {sign} ")
        if separator:
            sides = (left.strip(), right.strip())
            larger, smaller = sides[::-1] if flip else sides
            return Link(left=larger, right=smaller, strict=bool(strict))
    raise InputError("order", f"must be 'one > other', got {text!r}")


def judge_claim(claim: Claim, results: Results) -> Verdict:
    """Return the verdict over the runs of all cells."""
    if claim.undecidable:
        return Verdict(claim=claim, answer=ClaimAnswer.UNDECIDED, measured=claim.undecidable)
    if gaps := [gap for check in claim.checks for gap in _describe_gaps(check, results)]:
        return Verdict(claim=claim, answer=ClaimAnswer.UNDECIDED, measured="; ".join(gaps))
    answers = [_judge_check(check, results) for check in claim.checks]
    answer = ClaimAnswer.YES
    if ClaimAnswer.NO in answers:
        answer = ClaimAnswer.NO
    elif ClaimAnswer.UNDECIDED in answers:
        answer = ClaimAnswer.UNDECIDED
    measured = "; ".join(_measured(check, results) for check in claim.checks)
    without = ""
    if (
        claim.without
        and claim.checks
        and not _count_unknown(claim.checks[0].measure, claim.without, results)
    ):
        name = claim.checks[0].measure
        without = f"{claim.without}: {_mean_text(name, claim.without, results)}"
    return Verdict(claim=claim, answer=answer, measured=measured, without=without)


def _judge_check(check: Check, results: Results) -> ClaimAnswer:
    if check.band is not None:
        low, high = check.band
        return ClaimAnswer.YES if low <= _number(check, results) <= high else ClaimAnswer.NO
    answers = [_judge_link(link, check.measure, results) for link in check.links]
    for answer in (ClaimAnswer.NO, ClaimAnswer.UNDECIDED):
        if answer in answers:
            return answer
    return ClaimAnswer.YES


def _number(check: Check, results: Results) -> float:
    mean = compute_mean_interval(_values(check.measure, check.cell, results)).mean
    if not check.over:
        return mean
    other = compute_mean_interval(_values(check.measure, check.over, results)).mean
    return mean / other if other else math.inf


def _judge_link(link: Link, name: str, results: Results) -> ClaimAnswer:
    left, right = (_values(name, cell, results) for cell in (link.left, link.right))
    larger = max(abs(sum(left)), abs(sum(right)))
    gap = abs(sum(left) - sum(right)) / larger if larger else 0.0
    if not link.strict and gap <= TIE:
        return ClaimAnswer.YES
    _, low, high = compute_difference_interval(left, right)
    if low > 0:
        return ClaimAnswer.YES
    return ClaimAnswer.NO if high < 0 or gap <= 0.01 else ClaimAnswer.UNDECIDED


def _values(name: str, cell: str, results: Results) -> list[float]:
    values = (measure(name)(result) for result in results[cell])
    return [value for value in values if value is not None]


def _count_unknown(name: str, cell: str, results: Results) -> int:
    """Return the number of runs of a cell in which a measure is unknown."""
    return len(results[cell]) - len(_values(name, cell, results))


def _describe_gaps(check: Check, results: Results) -> list[str]:
    """Return where a measure is unknown; such a claim cannot be decided."""
    return [
        f"{check.measure} is unknown in {missing} of {len(results[cell])} runs of {cell}"
        for cell in check.cells
        if (missing := _count_unknown(check.measure, cell, results))
    ]


def _measured(check: Check, results: Results) -> str:
    shown = ", ".join(f"{cell} {_mean_text(check.measure, cell, results)}" for cell in check.cells)
    ratio = f", ratio {table_number(_number(check, results))}" if check.over else ""
    return f"{check.measure}: {shown}{ratio}"


def _mean_text(name: str, cell: str, results: Results) -> str:
    mean, low, high = compute_mean_interval(_values(name, cell, results))
    return f"{table_number(mean)} [{table_number(low)}, {table_number(high)}]"
