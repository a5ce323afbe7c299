"""The figures of the comparison with Spark's dynamic allocation, from made-up runs."""

from pathlib import Path

from scripts.attach_beside_spark import LEAD_S, WHOLE_S, Course, describe, draw, find_rate


def make_course(kind: str) -> Course:
    seconds = range(int(WHOLE_S))
    return Course(
        kind,
        files=[(float(second), 10) for second in seconds],
        batches=[(second + 1.0, second + 3.0, 20) for second in seconds[::2]],
        executors=[(float(second), 1 + (second > LEAD_S + 9)) for second in seconds],
        load_average=2.0,
    )


def test_the_load_rises_and_falls():
    assert [find_rate(second) for second in (0, 200, 270, 500, WHOLE_S + 1)] == [
        40,
        110,
        200,
        40,
        0,
    ]


def test_the_age_of_a_file_counts_to_the_end_of_the_batch_that_read_its_last_row():
    assert make_course("attach").ages()[:3] == [(0.0, 3.0, 10), (1.0, 2.0, 10), (2.0, 3.0, 10)]
    late = make_course("attach")
    late.batches = late.batches[:-10]
    measured = WHOLE_S - LEAD_S
    assert late.summarize()["share_late"] == round(20 / measured, 4)  # never read counts as late


def test_a_table_and_a_picture(tmp_path: Path):
    courses = [make_course("attach"), make_course("spark")]
    table = describe(courses)
    assert "| age of rows, most | 3 s | 3 s |" in table
    assert "| executors at the end | 2 | 2 |" in table
    draw(courses, tmp_path / "load.svg")
    assert (tmp_path / "load.svg").read_text().count("<path") > 10
