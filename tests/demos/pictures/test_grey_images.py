"""Pictures in Arrow and back."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.demos.pictures import grey_images as grey
from penstock.errors import InputError

PICTURES = np.random.default_rng(1).integers(0, 256, (7, 12, 12), dtype=np.uint8)


@pytest.mark.parametrize(("begin", "end"), [(0, 7), (2, 5), (6, 7), (3, 3)])
def test_any_part_of_a_column_comes_back(begin: int, end: int) -> None:
    column = grey.to_arrow(PICTURES)
    assert column.to_pylist() == [picture.tobytes() for picture in PICTURES]
    assert (grey.from_arrow(column[begin:end], 12) == PICTURES[begin:end]).all()


@pytest.mark.parametrize("wrong", [[b"x" * 143], [b"x" * 144, None], [b"x" * 145, b"x" * 143]])
def test_bytes_that_are_no_such_picture_are_refused(wrong: list[bytes | None]) -> None:
    with pytest.raises(InputError, match="12 x 12"):
        grey.from_arrow(pa.array(wrong, pa.binary()), 12)


def test_no_pictures_are_no_mistake() -> None:
    assert grey.from_arrow(pa.array([], pa.binary()), 12).shape == (0, 12, 12)
    assert len(grey.to_arrow(PICTURES[:0])) == 0


def test_a_smaller_picture_holds_means() -> None:
    small = grey.shrink(PICTURES, 4)
    by_hand = [
        [[np.mean(p[y : y + 4, x : x + 4]) for x in (0, 4, 8)] for y in (0, 4, 8)] for p in PICTURES
    ]
    assert small == pytest.approx(np.array(by_hand), rel=1e-5)
