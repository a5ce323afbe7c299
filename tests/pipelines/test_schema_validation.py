"""Columns that do not fit together are found before anything starts."""

from typing import Any

import pytest
from tests.pipelines.factories import COLUMNS, same, source

from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline


def other(batch: Any) -> Any:
    return batch


def wrong_with(pipeline: Pipeline) -> InputError:
    with pytest.raises(InputError) as wrong:
        pipeline.check()
    assert wrong.value.where
    return wrong.value


def test_a_batch_operator_must_know_what_it_writes() -> None:
    pipeline = source()
    pipeline.batches(reads="orders", writes="result")(same)
    wrong = wrong_with(pipeline)
    assert (wrong.field, wrong.problem) == ("same.writes", "topic 'result' is not declared")
    assert 'pipeline.topic("result"' in wrong.hint
    pipeline.topic("result", COLUMNS)
    pipeline.check()


def test_a_misspelt_output_is_recognised() -> None:
    pipeline = source()
    pipeline.topic("results", COLUMNS, external=True)
    pipeline.batches(reads="orders", writes="result")(same)
    assert wrong_with(pipeline).hint == "did you mean 'results'?"


def test_topics_that_are_read_together_have_the_same_columns() -> None:
    pipeline = source()
    pipeline.topic("more", "id int, amount double", external=True)
    pipeline.topic("out", COLUMNS)
    pipeline.batches(reads=["orders", "more"], writes="out")(same)
    wrong = wrong_with(pipeline)
    assert wrong.field == "same.reads"
    assert "'orders' and 'more' differ: column 'id': expected long, found int" in wrong.problem


def test_unknown_columns_of_a_frame_operator_wait_for_the_start() -> None:
    pipeline = source()
    pipeline.topic("out", COLUMNS)
    pipeline.operator(reads="orders", writes="unknown")(other)
    pipeline.batches(reads=["orders", "unknown"], writes="out", grouping="key:id")(same)
    pipeline.check()


def test_the_key_is_a_column_of_every_input() -> None:
    pipeline = source()
    pipeline.topic("out", COLUMNS)
    pipeline.batches(reads="orders", writes="out", grouping="key:ammount")(same)
    wrong = wrong_with(pipeline)
    assert (wrong.field, wrong.hint) == ("same.grouping", "did you mean 'amount'?")
    assert "topic 'orders' has no column 'ammount'" in wrong.problem


@pytest.mark.parametrize(
    ("options", "topic", "field"),
    [
        ({"on_error": "dead-letter"}, "same-errors", "same.on_error"),
        ({"timeout_s": 1.0, "dropped_to": "lost"}, "lost", "same.dropped_to"),
    ],
)
def test_what_is_dropped_or_fails_has_its_own_columns(
    options: dict[str, Any], topic: str, field: str
) -> None:
    pipeline = source()
    pipeline.topic("out", COLUMNS)
    pipeline.topic(topic, "text string")
    pipeline.batches(reads="orders", writes="out", **options)(same)
    wrong = wrong_with(pipeline)
    assert wrong.field == field and f"topic {topic!r} does not fit: column " in wrong.problem
    assert "do not declare" in wrong.hint


def test_topics_for_what_is_dropped_may_be_declared() -> None:
    pipeline = source()
    pipeline.topic("out", COLUMNS)
    pipeline.topic("lost", COLUMNS, keep="1 hour")
    pipeline.topic("same-errors", "topic string, offset long, error string, row string")
    pipeline.batches(
        reads="orders", writes="out", queue_size=9, dropped_to="lost", on_error="dead-letter"
    )(same)
    pipeline.check()
    assert pipeline.topics["lost"].keep == "1 hour"


@pytest.mark.parametrize(
    ("column", "problem", "hint"),
    [
        ("tss", "there is no column 'tss'", "did you mean 'ts'?"),
        ("amount", "column 'amount' must be a timestamp, but is double", "to_timestamp"),
    ],
)
def test_an_ingest_takes_event_times_from_a_timestamp(column: str, problem: str, hint: str) -> None:
    pipeline = Pipeline("open")
    pipeline.topic("orders", "ts timestamp, amount double")
    pipeline.ingest(writes="orders", time=column)(other)
    wrong = wrong_with(pipeline)
    assert (wrong.field, wrong.problem) == ("other.time", problem)
    assert hint in wrong.hint
