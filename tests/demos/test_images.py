"""Images from photo to label."""

import time

import numpy as np
import pyarrow as pa
import pytest
from tests.demos.in_memory import column, run

from penstock.demos import images
from penstock.demos.support.emulated_service import EmulatedService

PHOTOS = 300


@pytest.fixture(scope="module")
def topics() -> dict[str, pa.Table]:
    return run(images.build(service_s=0), PHOTOS)


def test_every_photo_is_stored_and_labelled_once(topics: dict[str, pa.Table]) -> None:
    for topic in ("stored", "labels"):
        assert column(topics[topic], "id") == list(range(PHOTOS))
    assert column(topics["stored"], "taken") == column(topics["photos"], "taken")


def test_the_stored_copy_is_the_photo_in_small(topics: dict[str, pa.Table]) -> None:
    for photo, copy in zip(topics["photos"].to_pylist(), topics["stored"].to_pylist(), strict=True):
        large = np.frombuffer(photo["picture"], np.uint8).reshape(64, 64).astype(float)
        small = np.frombuffer(copy["picture"], np.uint8).reshape(copy["height"], copy["width"])
        assert abs(large[:4, 8:12].mean() - small[0, 2]) <= 0.51
        assert abs(large.mean() - small.mean()) < 0.1


def test_guesses_are_right_as_often_as_the_model_is(topics: dict[str, pa.Table]) -> None:
    """96 of 100 in these 300, 94 in the long run."""
    labels = topics["labels"]
    truth = column(topics["photos"], "label")
    assert column(labels, "label") == truth
    right = np.mean(np.array(column(labels, "guess")) == np.array(truth))
    assert 0.9 < right < 0.98
    assert all(0.1 < sure <= 1 for sure in column(labels, "confidence"))


def test_recognition_takes_the_time_it_is_given(topics: dict[str, pa.Table]) -> None:
    service = EmulatedService(service_s=0.01, scv=0.1)
    recognise = images.build(service_s=0.01, scv=0.1).operators["recognise"]
    model = recognise.options.resource()
    batch = topics["small"].slice(0, 4).to_batches()[0]
    begun = time.perf_counter()
    recognise(batch, model)
    assert time.perf_counter() - begun >= service.times("recognise", batch["id"]).sum()


def test_what_waits_is_called_with_few_rows() -> None:
    assert images.PIPELINE.operators["recognise"].options.chunk_rows == 4
    assert images.PIPELINE.objective_s == 5
