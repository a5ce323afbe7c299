"""What sayings are about: a model trained on sayings that no record has."""

from functools import cache

import numpy as np

from penstock.demos.texts import messages as sayings
from penstock.demos.texts.bayes import Bayes
from penstock.demos.texts.phrases import SUBJECTS
from penstock.pipelines import record_draws as draws

_TRAINED_ON = 4000


@cache
def trained() -> Bayes:
    """Train the model; a process does it once."""
    ids = draws.TRAINING + np.arange(_TRAINED_ON)
    return Bayes.train(sayings.texts(ids), SUBJECTS, sayings.truth(ids).subject)
