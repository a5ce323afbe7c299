"""Tweets, and how many each author has written."""

from collections import Counter

import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import tweets, tweets_authors

TWEETS = 500


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(tweets_authors.build(service_s=0), TWEETS)


def test_the_last_count_of_an_author_is_what_was_written(topics: dict[str, pa.Table]) -> None:
    written = topics["written"]
    last = dict(zip(column(written, "author"), column(written, "n"), strict=True))
    assert last == Counter(column(topics["parsed"], "author"))


def test_everything_else_is_as_without_the_counter(topics: dict[str, pa.Table]) -> None:
    plain = run(tweets.PIPELINE, TWEETS)
    assert {name: topics[name] for name in plain} == plain


def test_only_the_counter_waits() -> None:
    operators = tweets_authors.PIPELINE.operators
    assert operators["count"].function.service.service_s == 0.5
    assert {op.options.chunk_rows for op in operators.values()} == {None}
