"""Photos of handwritten digits, drawn by number, so that any record can be generated alone.

A digit of 8 x 8 cells is drawn six times as large, somewhere on a grey slate that is lit from one
side, and grain is laid over it. All of it is drawn from the number of the record.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.demos.pictures.grey_images import Pictures
from penstock.pipelines import record_draws as draws

#: Pixels along the edge of a photo, of a digit's cell, and of the digit in the photo.
SIDE = 64
CELL = 6
DIGIT = 8 * CELL
#: Levels of a cell in the digits of scikit-learn: from 0 to this.
CHALK = 16
_ROOM = SIDE - DIGIT
_GRAIN = 48


def draw(ids: draws.Ids, digits: NDArray[np.float64]) -> Pictures:
    """Draw a digit (8 x 8, from 0 to 16) as the photo of each number."""
    top, left = (draws.pick(ids, edge, _ROOM + 1) for edge in ("top", "left"))
    chalk = _PLACED[top] @ (digits / CHALK) @ _PLACED[left].transpose(0, 2, 1)
    along = np.linspace(-0.5, 0.5, SIDE)
    photos = _each(ids, "contrast", 110, 170) * chalk + _each(ids, "slate", 30, 80)
    photos += _each(ids, "light from above", -20, 20) * along[:, None]
    photos += _each(ids, "light from the left", -20, 20) * along
    photos += _grain(ids)
    return np.clip(photos, 0, 255).astype(np.uint8)


def _each(ids: draws.Ids, stream: str, low: float, high: float) -> draws.Floats:
    """Draw one number for all pixels of a photo."""
    return draws.uniform(ids, stream, low, high)[:, None, None]


def _grain(ids: draws.Ids) -> draws.Floats:
    """Draw the noise of each pixel; 64 random bits are enough for four."""
    quarter = SIDE * SIDE // 4
    numbers = ids[:, None] * quarter + np.arange(quarter)
    parts = draws.bits(numbers, "grain").view(np.uint16).reshape(-1, SIDE, SIDE)
    return (parts / 2.0**16 - 0.5) * _GRAIN


def _placed() -> draws.Floats:
    """Return, for each place along an edge, the share of each of 8 cells in each of 64 pixels.

    Between the middles of two cells chalk fades from one to the other, so that a digit
    has no steps.
    """
    middle = (np.arange(DIGIT) + 0.5) / CELL - 0.5
    share = np.clip(1 - np.abs(middle[:, None] - np.arange(8)), 0, 1)
    placed = np.zeros((_ROOM + 1, SIDE, 8))
    for place in range(_ROOM + 1):
        placed[place, place : place + DIGIT] = share
    return placed


_PLACED = _placed()
