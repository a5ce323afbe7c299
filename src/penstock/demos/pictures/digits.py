"""The digits of scikit-learn: one half trains the recogniser, the other appears in photos.

No photo shows a digit that the model was trained on, so its guesses are worth checking.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.demos.pictures.grey_images import Pictures, shrink
from penstock.demos.pictures.photos import CELL, CHALK, DIGIT, SIDE, draw
from penstock.extras import import_optional
from penstock.pipelines import record_draws as draws

Digits = NDArray[np.float64]
Labels = NDArray[np.int32]

#: Brighter than the slate by this much is chalk; light and grain stay below.
_THRESHOLD = 30
#: Divisor in place of 0: in a photo without chalk the middle is used.
_LITTLE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A normal distribution for each digit: small enough to be sent to every process.

    Processes that recognise need no scikit-learn, which takes a second to load.
    """

    means: NDArray[np.float64]
    #: For each digit, the directions of its spread, each divided by the spread along it.
    axes: tuple[NDArray[np.float64], ...]
    #: For each digit, the constant term of its log likelihood.
    offsets: NDArray[np.float64]

    def chances(self, cells: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the probability of each of the ten labels for each digit."""
        far = [
            ((cells - mean) @ axes) ** 2 for mean, axes in zip(self.means, self.axes, strict=True)
        ]
        scores = self.offsets - np.stack([part.sum(axis=1) for part in far], axis=1) / 2
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: NDArray[np.float64] = likely / likely.sum(axis=1, keepdims=True)
        return chances


@cache
def halves() -> tuple[tuple[Digits, Labels], tuple[Digits, Labels]]:
    """Return digits (8 x 8, from 0 to 16) with their labels: those to train on, and the others."""
    dataset = import_optional("sklearn.datasets", "this demo").load_digits()
    images, labels, half = dataset.images, dataset.target.astype(np.int32), len(dataset.target) // 2
    return (images[:half], labels[:half]), (images[half:], labels[half:])


def photos(ids: draws.Ids) -> tuple[Pictures, Labels]:
    """Return the photo of each number, and which digit is on it."""
    _, (digits, labels) = halves()
    shown = draws.pick(ids, "digit", len(labels))
    return draw(ids, digits[shown]), labels[shown]


def cells(pictures: Pictures) -> Pictures:
    """Find the digit of each photo and return it as 8 x 8 cells from 0 to 16."""
    slate = np.median(pictures, axis=(1, 2), keepdims=True)
    chalk = np.maximum(pictures - slate - _THRESHOLD, 0, dtype=np.float32)
    rows = _around(chalk.sum(axis=2))[:, :, None]
    columns = _around(chalk.sum(axis=1))[:, None, :]
    small = shrink(chalk[np.arange(len(chalk))[:, None, None], rows, columns], CELL)
    brightest = np.maximum(small.max(axis=(1, 2), keepdims=True), _LITTLE)
    levels: Pictures = np.rint(CHALK * small / brightest).astype(np.uint8)
    return levels


def _around(chalk: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the rows (or columns) of the digit: its width, about the middle of the chalk."""
    from_middle = np.arange(SIDE) - (SIDE - 1) / 2
    middle = chalk @ from_middle / np.maximum(chalk.sum(axis=1), _LITTLE)
    room = SIDE - DIGIT
    first: NDArray[np.intp] = np.clip(np.rint(middle) + room // 2, 0, room).astype(np.intp)
    return first[:, None] + np.arange(DIGIT)


@cache
def train_recogniser() -> Model:
    """Train the recogniser on photos of the first half; a process does it once.

    Each label gets a separate normal distribution, which takes one pass over the digits.
    """
    module = import_optional("sklearn.discriminant_analysis", "this demo")
    analysis = module.QuadraticDiscriminantAnalysis
    (digits, labels), _ = halves()
    small = cells(draw(draws.TRAINING + np.arange(len(labels)), digits))
    flat = small.reshape(len(small), -1) / CHALK
    return _extract_model(analysis(reg_param=0.1).fit(flat, labels))


def _extract_model(fitted: Any) -> Model:
    """Return the parameters that scikit-learn has fitted."""
    scalings = [np.asarray(scaling) for scaling in fitted.scalings_]
    axes = [r / np.sqrt(s) for r, s in zip(fitted.rotations_, scalings, strict=True)]
    spreads = np.array([np.log(scaling).sum() for scaling in scalings])
    return Model(np.asarray(fitted.means_), tuple(axes), np.log(fitted.priors_) - spreads / 2)


def recognise(model: Model, small: Pictures) -> tuple[Labels, NDArray[np.float64]]:
    """Return the guess for each digit of 8 x 8 cells, and how likely the model thinks it is."""
    chances = model.chances(small.reshape(len(small), -1) / CHALK)
    return chances.argmax(axis=1).astype(np.int32), chances.max(axis=1)
