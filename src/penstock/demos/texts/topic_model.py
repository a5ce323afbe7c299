"""A naive Bayes classifier, and its model of the subjects of messages."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from penstock.demos.texts import messages
from penstock.demos.texts.phrases import SUBJECTS
from penstock.pipelines import record_draws as draws
from penstock.pipelines.record_draws import Floats, Indices
from penstock.pipelines.text_columns import choose, pc, words


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveBayes:
    """A trained naive Bayes classifier of texts."""

    labels: tuple[str, ...]
    vocabulary: pa.Array
    #: (label, word) -> logarithm of the word's share of the words under this label
    log_shares: Floats
    #: label -> logarithm of its share of all texts
    log_priors: Floats

    @classmethod
    def train(cls, texts: pa.Array, labels: tuple[str, ...], truth: Indices) -> "NaiveBayes":
        """Count the words of texts whose labels are known (truth: an index into the labels)."""
        tokens, row = words(texts)
        encoded = tokens.dictionary_encode()
        counts = np.ones((len(labels), len(encoded.dictionary)))  # 1: no word is impossible
        np.add.at(counts, (truth[row], encoded.indices.to_numpy()), 1)
        return cls(
            labels=labels,
            vocabulary=encoded.dictionary,
            log_shares=np.log(counts / counts.sum(axis=1, keepdims=True)),
            log_priors=np.log(np.bincount(truth, minlength=len(labels)) / len(truth)),
        )

    def judge(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the most likely label of each text, and its probability."""
        chances = self.chances(texts)
        return choose(self.labels, chances.argmax(axis=1)), pa.array(chances.max(axis=1))

    def chances(self, texts: pa.Array) -> Floats:
        """Return the probability of each label for each text; unknown words are ignored."""
        tokens, row = words(texts)
        known = pc.index_in(tokens, value_set=self.vocabulary)
        seen = known.is_valid().to_numpy(zero_copy_only=False)
        logs = np.tile(self.log_priors, (len(texts), 1))
        np.add.at(logs, row[seen], self.log_shares[:, known.drop_null().to_numpy()].T)
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances: Floats = odds / odds.sum(axis=1, keepdims=True)
        return chances


_TRAINING_MESSAGES = 4000


@cache
def train_topic_model() -> NaiveBayes:
    """Train the model on messages that no record has; cached per process."""
    ids = draws.TRAINING + np.arange(_TRAINING_MESSAGES)
    return NaiveBayes.train(messages.texts(ids), SUBJECTS, messages.truth(ids).subject)
