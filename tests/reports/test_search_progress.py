"""The progress line of a search: seldom where it cannot be redrawn."""

from io import StringIO

from penstock.decentralized.checker.exploration import SearchProgress
from penstock.reports.search_progress import SearchLine


def test_a_file_gets_a_line_every_ten_seconds() -> None:
    times, stream = iter([0.0, 5.0, 10.0, 15.0, 20.0]), StringIO()
    with SearchLine("check", stream, lambda: next(times)) as line:
        for states in (10_000, 20_000, 30_000, 40_000):
            line.show(SearchProgress(states=states, frontier=1_000, depth=7))
    assert stream.getvalue().splitlines() == [
        "check: 20,000 states, 1,000 to explore, depth 7, 2,000 states/s",
        "check: 40,000 states, 1,000 to explore, depth 7, 2,000 states/s",
    ]
