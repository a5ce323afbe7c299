"""Clicks from user to session."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import clicks

CLICKS = 3000
GAP = timedelta(seconds=clicks.GAP_S)


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    """Clicks for half a minute."""
    return run(clicks.build(service_s=0), CLICKS, every_us=10_000)


def test_a_click_is_worth_what_its_page_is(topics: dict[str, pa.Table]) -> None:
    worth = dict(zip(clicks.PAGES, clicks.CENTS, strict=True))
    assert column(topics["valued"], "cents") == [worth[p] for p in column(topics["clicks"], "page")]


def test_closed_sessions_are_those_of_the_clicks_that_were_not_late(
    topics: dict[str, pa.Table],
) -> None:
    late = set(column(topics["late"], "id"))
    going: dict[str, list[list]] = {}
    valued = [row for row in topics["valued"].to_pylist() if row["id"] not in late]
    for row in sorted(valued, key=lambda row: row["at"]):
        mine = going.setdefault(row["user"], [])
        if not mine or row["at"] - mine[-1][1] >= GAP:
            mine.append([row["at"], row["at"], 0, 0])
        mine[-1][1:] = [row["at"], mine[-1][2] + 1, mine[-1][3] + row["cents"]]
    every = Counter(
        (user, start, last + GAP, n, cents)
        for user, mine in going.items()
        for start, last, n, cents in mine
    )
    told = Counter(tuple(row.values()) for row in topics["sessions"].to_pylist())
    newest = max(end for _, _, end, _, _ in told)
    assert told == Counter({row: n for row, n in every.items() if row[2] <= newest})
    assert len(told) > 100


def test_what_was_offline_for_long_is_late(topics: dict[str, pa.Table]) -> None:
    assert 0.005 < len(topics["late"]) / CLICKS < 0.03
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    for row in topics["late"].to_pylist():
        arrived = begin + timedelta(milliseconds=10 * row["id"])
        assert arrived - row["at"] > timedelta(seconds=clicks.DELAY_S)


def test_a_few_users_click_much(topics: dict[str, pa.Table]) -> None:
    by_user = Counter(column(topics["clicks"], "user")).most_common()
    assert 0.07 < by_user[0][1] / CLICKS < 0.13
    assert len(by_user) > 500


def test_sessions_wait() -> None:
    assert clicks.PIPELINE.operators["session"].function.service.service_s == 0.5
