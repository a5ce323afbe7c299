"""Naive Bayes against the one of scikit-learn."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from sklearn.naive_bayes import MultinomialNB

from penstock.demos.texts import messages, topic_model
from penstock.demos.texts.phrases import SUBJECTS
from penstock.demos.texts.topic_model import NaiveBayes
from penstock.pipelines import record_draws as draws


def counted(texts: pa.Array, vocabulary: list[str]) -> np.ndarray:
    """How often each text holds each word of the vocabulary."""
    found = [Counter(re.findall(r"(?:[^\W_]|')+", text.lower())) for text in texts.to_pylist()]
    return np.array([[counts[word] for word in vocabulary] for counts in found])


def test_chances_are_those_of_another_implementation() -> None:
    train, asked = draws.TRAINING + np.arange(500), messages.texts(np.arange(300))
    texts, truth = messages.texts(train), messages.truth(train).subject
    ours = NaiveBayes.train(texts, SUBJECTS, truth)
    vocabulary = ours.vocabulary.to_pylist()
    theirs = MultinomialNB().fit(counted(texts, vocabulary), truth)
    expected = theirs.predict_proba(counted(asked, vocabulary))
    assert ours.chances(asked) == pytest.approx(expected, abs=1e-9)
    labels, sure = ours.judge(asked)
    assert labels.to_pylist() == [SUBJECTS[best] for best in expected.argmax(axis=1)]
    assert sure.to_pylist() == pytest.approx(expected.max(axis=1))


def test_unknown_words_say_nothing() -> None:
    model = NaiveBayes.train(pa.array(["a", "a", "b"]), ("one", "two"), np.array([0, 0, 1]))
    assert model.chances(pa.array(["zzz", ""])) == pytest.approx(np.array([[2 / 3, 1 / 3]] * 2))


def test_sayings_are_mostly_filed_under_what_they_are_about() -> None:
    """94 of 100: some messages speak of a thing that belongs to another subject."""
    ids = np.arange(2000)
    labels, _ = topic_model.train_topic_model().judge(messages.texts(ids))
    truth = [SUBJECTS[subject] for subject in messages.truth(ids).subject]
    right = np.mean(
        [found == meant for found, meant in zip(labels.to_pylist(), truth, strict=True)]
    )
    assert 0.91 < right < 0.97
