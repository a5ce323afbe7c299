"""Photos are made again by number, and the recogniser knows digits that it has never seen."""

import numpy as np
import pytest

from penstock.demos.pictures import digits
from penstock.demos.pictures.photos import draw

IDS = np.arange(1_000)


def test_any_photo_is_made_again_by_itself() -> None:
    whole, labels = digits.photos(IDS[:200])
    for part in (slice(0, 1), slice(37, 90), slice(199, 200)):
        pictures, again = digits.photos(IDS[part])
        assert (pictures == whole[part]).all()
        assert (again == labels[part]).all()


def test_no_two_photos_are_alike() -> None:
    pictures, _ = digits.photos(IDS[:200])
    assert len(np.unique(pictures.reshape(200, -1), axis=0)) == 200


def test_no_photo_shows_a_digit_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    (trained, _), (others, _) = digits.halves()
    seen = {digit.tobytes() for digit in trained}
    assert len(trained) + len(others) == 1797
    assert not any(digit.tobytes() in seen for digit in others)
    one = (trained[:1], np.array([1])), (others[:1], np.array([7]))
    monkeypatch.setattr(digits, "halves", lambda: one)
    assert (digits.photos(IDS[:20])[1] == 7).all()


def test_all_digits_are_shown_about_as_often() -> None:
    _, labels = digits.photos(IDS)
    counts = np.bincount(labels, minlength=10)
    assert counts.min() > 60
    assert counts.max() < 150


def test_where_a_digit_is_makes_little_difference() -> None:
    """Cells found in photos are near the digits they show (16 levels), wherever those are."""
    _, (images, _) = digits.halves()
    digit = images[:1]
    pictures = draw(IDS[:100], np.repeat(digit, 100, axis=0))
    found = digits.cells(pictures).astype(float)
    # a cell more or less to one side is allowed: compare over the nine shifts
    shifted = [np.roll(digit[0], (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    off = np.min([np.abs(found - each).mean(axis=(1, 2)) for each in shifted], axis=0)
    assert off.max() < 3
    assert np.abs(found - np.roll(digit[0], 4)).mean() > 5


def test_most_guesses_on_photos_of_unseen_digits_are_right() -> None:
    """95 of 100 (94 over 10,000 photos); guessing would be right in 10, and being sure helps."""
    pictures, labels = digits.photos(IDS)
    guess, confidence = digits.recognise(digits.train_recogniser(), digits.cells(pictures))
    right = guess == labels
    assert 0.92 < right.mean() < 0.97
    assert right[confidence > 0.9].mean() > right[confidence <= 0.9].mean() + 0.1


def test_training_gives_the_same_model_each_time() -> None:
    small = digits.cells(digits.photos(IDS[:50])[0])
    first = digits.recognise(digits.train_recogniser(), small)
    second = digits.recognise(digits.train_recogniser.__wrapped__(), small)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()


def test_an_empty_photo_is_recognised_as_something() -> None:
    blank = np.full((1, 64, 64), 50, dtype=np.uint8)
    assert (digits.cells(blank) == 0).all()
    guess, confidence = digits.recognise(digits.train_recogniser(), digits.cells(blank))
    assert 0 <= guess[0] <= 9
    assert np.isfinite(confidence).all()


def test_the_model_thinks_what_scikit_learn_thinks() -> None:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis  # noqa: PLC0415

    (trained_on, labels), (others, _) = digits.halves()
    flat, asked = (part.reshape(len(part), -1) / 16 for part in (trained_on, others))
    theirs = QuadraticDiscriminantAnalysis(reg_param=0.1).fit(flat, labels)
    expected = theirs.predict_proba(asked)
    assert digits._extract_model(theirs).chances(asked) == pytest.approx(expected, abs=1e-9)
