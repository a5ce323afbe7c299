"""Tweets from JSON to document."""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import tweets
from penstock.demos.texts import authors, messages
from penstock.demos.texts.phrases import SUBJECTS

TWEETS = 500


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(tweets.PIPELINE, TWEETS)


def test_every_tweet_is_stored_once_as_it_was_judged(topics: dict[str, pa.Table]) -> None:
    assert column(topics["stored"], "id") == list(range(TWEETS))
    documents = [json.loads(document) for document in column(topics["stored"], "document")]
    judged = topics["judged"].drop_columns("id").to_pylist()
    assert documents == judged


def test_contents_are_mostly_what_was_meant(topics: dict[str, pa.Table]) -> None:
    """94 of 100, as the model by itself."""
    meant = np.array(SUBJECTS)[messages.truth(np.arange(TWEETS)).subject]
    right = np.mean(np.array(column(topics["contents"], "content")) == meant)
    assert 0.9 < right < 0.98


def test_authors_are_found_in_the_directory(topics: dict[str, pa.Table]) -> None:
    lines = [json.loads(line) for line in column(topics["tweets"], "line")]
    number = {
        name: n for n, name in enumerate(authors.names(np.arange(authors.AUTHORS)).to_pylist())
    }
    of_forty = {0: "press", 1: "office", 2: "robot"}
    expected = Counter(of_forty.get(number[line["user"]] % 40, "person") for line in lines)
    assert Counter(column(topics["judged"], "standing")) == expected
    assert expected["person"] < TWEETS


def test_no_link_is_left(topics: dict[str, pa.Table]) -> None:
    linked = sum("https://" in line for line in column(topics["tweets"], "line"))
    assert linked > TWEETS / 10
    assert not any(re.search("https?:", text) for text in column(topics["parsed"], "text"))


def test_with_service_times_every_operator_waits() -> None:
    waiting = tweets.build(service_s=0.1).operators.values()
    assert {operator.options.chunk_rows for operator in waiting} == {4}
    assert {op.options.chunk_rows for op in tweets.PIPELINE.operators.values()} == {None}
