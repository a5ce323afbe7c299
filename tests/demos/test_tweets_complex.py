"""Complex tweets: filtered, split in two, judged, and stored together."""

import json
import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import tweets_complex
from penstock.demos.support.emulated_service import EmulatedService
from penstock.demos.texts import messages
from penstock.demos.texts.phrases import LANGUAGES, SMALL_WORDS
from penstock.engines.simulator import library

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWEETS = 600


def english_only(rows: pa.Table) -> pa.Table:
    """The rule of `language` in plain Python."""
    kept = []
    for text in rows["text"].to_pylist():
        met = [len(set(text.lower().split(" ")) & set(SMALL_WORDS[of])) for of in LANGUAGES]
        kept.append(met[0] > max(met[1:]))
    return rows.filter(pa.array(kept))


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(tweets_complex.PIPELINE, TWEETS, {"language": english_only})


def test_what_is_not_english_goes_no_further(topics: dict[str, pa.Table]) -> None:
    english = messages.truth(np.arange(TWEETS)).language == LANGUAGES.index("en")
    assert column(topics["english"], "id") == np.flatnonzero(english).tolist()
    assert english.mean() == pytest.approx(0.8, abs=0.06)


def test_the_split_loses_nothing_and_doubles_nothing(topics: dict[str, pa.Table]) -> None:
    english = topics["english"].to_pylist()
    personal = re.compile(r"\b(i|me|my|honestly)\b", re.IGNORECASE)
    views = [row["id"] for row in english if personal.search(row["text"])]
    assert column(topics["views"], "id") == views
    assert sorted(column(topics["headlines"], "id") + views) == column(topics["english"], "id")
    assert 0.4 < len(views) / len(english) < 0.6


def test_most_are_split_as_they_were_meant(topics: dict[str, pa.Table]) -> None:
    """89 of 100: one opening of eight misleads on either side, if nothing else gives it away."""
    meant = np.array(messages.KINDS)[messages.truth(np.array(column(topics["kinds"], "id"))).kind]
    right = np.mean(np.array(column(topics["kinds"], "kind")) == meant)
    assert 0.83 < right < 0.93


def test_announcements_and_tags_are_cut_off(topics: dict[str, pa.Table]) -> None:
    assert not any("Breaking:" in text for text in column(topics["headlines"], "text"))
    assert sum("#" in text for text in column(topics["kinds"], "text")) > TWEETS / 10
    assert not any("#" in text for text in column(topics["views"], "text"))


def test_everything_that_was_judged_is_stored(topics: dict[str, pa.Table]) -> None:
    documents = [json.loads(document) for document in column(topics["stored"], "document")]
    kinds = Counter(document["kind"] for document in documents)
    assert kinds == Counter(column(topics["kinds"], "kind"))
    found = Counter(document["found"] for document in documents)
    by_topic = Counter(column(topics["subjects"], "found"))
    assert found == by_topic + Counter(column(topics["feelings"], "found"))
    assert set(found) == {"health", "politics", "sport", "money", "for", "against", "neither"}


def test_service_times_stand_to_one_another_as_in_the_simulator() -> None:
    rates = {op.name: op.capacity_rate for op in library.load_pipeline("tweets-complex").operators}
    heaviest = rates["sentiment"]
    expected = {name: heaviest / rate for name, rate in rates.items() if name != "language"}
    assert expected == pytest.approx(tweets_complex.SHARES)


def test_only_what_is_kept_is_waited_for(topics: dict[str, pa.Table]) -> None:
    news = tweets_complex.build(service_s=0.08).operators["news"]
    batch = topics["kinds"].slice(0, 12).to_batches()[0]
    begun = time.perf_counter()
    kept = news(batch)
    took_s = time.perf_counter() - begun
    service = EmulatedService(service_s=0.02, scv=0.01)
    assert 0 < len(kept) < len(batch)
    assert took_s >= service.times("news", kept["id"]).sum()


@pytest.mark.spark
@pytest.mark.slow
def test_spark_keeps_the_same_tweets(topics: dict[str, pa.Table], spark: "SparkSession") -> None:
    language = tweets_complex.PIPELINE.operators["language"]
    kept = language.try_rows(topics["parsed"], spark=spark)
    assert [row["id"] for row in kept] == column(topics["english"], "id")
