"""Messages: made again by number, and meant as drawn."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

from penstock.demos.texts import authors, messages
from penstock.demos.texts.phrases import LANGUAGES, SMALL_WORDS

IDS = np.arange(3000)


def due(rows: int) -> pa.Array:
    return pa.array(np.arange(rows) * 1000, pa.timestamp("us", tz="UTC"))


def test_any_tweet_is_made_again_by_itself() -> None:
    whole = messages.tweets(0, due(500))
    for first, end in ((0, 1), (137, 400), (499, 500)):
        assert messages.tweets(first, due(end - first)).equals(whole.slice(first, end - first))


def test_shares_are_as_declared() -> None:
    truth = messages.truth(np.arange(50_000))
    assert (truth.language == LANGUAGES.index("en")).mean() == pytest.approx(0.8, abs=0.01)
    assert (truth.kind == 0).mean() == pytest.approx(0.5, abs=0.01)


def test_small_words_tell_the_language() -> None:
    languages = messages.truth(IDS).language
    for text, language in zip(messages.texts(IDS).to_pylist(), languages, strict=True):
        met = [len(set(text.lower().split()) & set(SMALL_WORDS[of])) for of in LANGUAGES]
        own = met.pop(language)
        assert own > max(met), text


def test_parsing_gives_back_who_wrote_what() -> None:
    raw = messages.tweets(0, due(500)).to_batches()[0]
    found = messages.parse(raw.slice(40, 300)).to_pylist()
    for row, line in zip(found, raw["line"][40:340].to_pylist(), strict=True):
        tweet = json.loads(line)
        assert (row["id"], row["author"]) == (tweet["id"], tweet["user"])
        assert row["text"] == re.sub(r"@\w+ ?| ?https?://\S+", "", tweet["text"])
        assert not re.search("@|https", row["text"])


def test_links_and_addressees_are_there_to_be_removed() -> None:
    texts = messages.texts(IDS).to_pylist()
    assert sum("https://" in text for text in texts) == pytest.approx(600, abs=100)
    assert sum(text.startswith("@") for text in texts) == pytest.approx(300, abs=80)


def test_authors_have_names_of_their_own() -> None:
    names = authors.names(np.arange(authors.AUTHORS)).to_pylist()
    assert len(set(names)) == authors.AUTHORS
    assert messages.authors.writers(IDS).max() < authors.AUTHORS


def test_the_directory_knows_whom_it_lists() -> None:
    listed = authors.directory()
    known = dict(zip(listed["name"].to_pylist(), listed["standing"].to_pylist(), strict=True))
    assert len(known) == authors.AUTHORS * 3 // 40
    names = authors.names(np.arange(200))
    expected = [known.get(name, "person") for name in names.to_pylist()]
    assert authors.standing(listed, names).to_pylist() == expected
    assert set(expected) == {"person", "press", "office", "robot"}
