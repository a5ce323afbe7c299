"""Without scikit-learn the demos that need it name the extra that installs it."""

import sys

import numpy as np
import pytest

from penstock.demos.pictures import digits
from penstock.demos.texts import name_shape
from penstock.errors import InputError

HINT = r"scikit-learn: is not installed.*\nhint: pip install penstock\[demo\]"


@pytest.fixture(autouse=True)
def no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block the import, and what an earlier test may have trained."""
    for name in ("datasets", "discriminant_analysis", "tree"):
        monkeypatch.setitem(sys.modules, f"sklearn.{name}", None)
    for cached in (digits.halves, digits.train_recogniser, name_shape.train_classifier):
        cached.cache_clear()


def test_photos_of_digits_need_it() -> None:
    with pytest.raises(InputError, match=HINT):
        digits.photos(np.arange(3))


def test_the_recogniser_needs_it() -> None:
    with pytest.raises(InputError, match=HINT):
        digits.train_recogniser()


def test_the_classifier_of_names_needs_it() -> None:
    with pytest.raises(InputError, match=HINT):
        name_shape.train_classifier()
