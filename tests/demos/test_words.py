"""Words from sentence to count."""

from collections import Counter

import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.core.placement import useful_replicas
from penstock.demos import words
from penstock.topics.hashing import hash_keys, slice_of

SENTENCES = 800


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(words.build(service_s=0), SENTENCES)


def test_the_last_count_of_a_word_is_how_often_it_was_said(topics: dict[str, pa.Table]) -> None:
    said = Counter(word for line in column(topics["sentences"], "line") for word in line.split())
    counts = topics["counts"]
    last = dict(zip(column(counts, "word"), column(counts, "n"), strict=True))
    assert last == said
    assert len(set(map(tuple, (row.values() for row in counts.to_pylist())))) == len(counts)


def test_words_have_numbers_of_their_own(topics: dict[str, pa.Table]) -> None:
    ids = column(topics["words"], "id")
    assert len(set(ids)) == len(ids)


def test_some_words_are_frequent_but_none_fills_a_replica(topics: dict[str, pa.Table]) -> None:
    word = topics["words"]["word"].combine_chunks()
    (_, most), *_ = Counter(word.to_pylist()).most_common(1)
    assert 0.04 < most / len(word) < 0.08
    loads = Counter(slice_of(hash_keys([word]), 64).tolist())
    assert useful_replicas([float(loads[number]) for number in range(64)]) > 8


def test_both_stages_wait() -> None:
    assert words.PIPELINE.operators["split"].options.chunk_rows == 4
    count = words.build(service_s=0.4).operators["count"].function
    assert count.service.service_s == pytest.approx(0.04)
