"""Tables as text, Markdown and CSV."""

import csv
import io
import math

from penstock.reports.tables import (
    Table,
    as_csv,
    as_markdown,
    as_text,
    with_interval,
    with_margin,
)

TABLE = Table(
    title="q1",
    columns=("policy", "latency\navg (s)", "hours"),
    rows=(("ds2 *", "93.5", "2.0"), ("hpa|cpu", "8.1", "12.0")),
    notes=("* best",),
)


def test_cells_are_written_as_the_thesis_wrote_them() -> None:
    assert with_interval(0.12345, 0.1, 0.2) == "0.123 [0.100, 0.200]"
    assert with_interval(1234.56, 1000, 2000) == "1,234.6 [1,000.0, 2,000.0]"
    assert with_margin(0.12345, 0.1, 0.2) == "0.123±0.077"
    assert with_margin(12.0, 11.99, 12.06) == "12.0±0.1"


def test_an_interval_that_tells_nothing_is_left_out() -> None:
    for write in (with_interval, with_margin):
        assert write(5.0, -math.inf, math.inf) == "5.0"
        assert write(5.0, 5.0, 5.0) == "5.0"
        assert write(None, 0, 0) == "-"
    assert with_margin(1.4, 1.38, 1.43) == "1.4"


def test_text_is_aligned_and_headed_by_lines() -> None:
    assert as_text(TABLE).splitlines() == [
        "q1",
        "",
        "         latency",
        "policy   avg (s)  hours",
        "ds2 *       93.5    2.0",
        "hpa|cpu      8.1   12.0",
        "* best",
    ]


def test_markdown_has_one_row_a_line_and_no_signs_of_its_own() -> None:
    assert as_markdown(TABLE).splitlines() == [
        "### q1",
        "",
        "| policy | latency avg (s) | hours |",
        "|---|--:|--:|",
        r"| ds2 \* | 93.5 | 2.0 |",
        r"| hpa\|cpu | 8.1 | 12.0 |",
        "",
        r"\* best",
    ]


def test_csv_comes_back_as_it_went_in() -> None:
    rows = [["a, b", 'say "c"'], ["1.5", ""]]
    text = as_csv(("one", "two"), rows)
    assert list(csv.reader(io.StringIO(text))) == [["one", "two"], *rows]
