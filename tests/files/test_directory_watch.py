"""Waiting for files."""

import threading
import time
from pathlib import Path

import pytest

from penstock.files import directory_watch
from penstock.files.directory_watch import DirectoryWatch


@pytest.fixture(params=["inotify", "none"])
def watched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[DirectoryWatch, Path]:
    if request.param == "none":
        monkeypatch.setattr(directory_watch, "_load_library", lambda: None)
    elif directory_watch._load_library() is None:
        pytest.skip("the system has no inotify")
    return DirectoryWatch([tmp_path]), tmp_path


def test_a_file_that_came_before_the_wait_ends_it_at_once(
    watched: tuple[DirectoryWatch, Path],
) -> None:
    watch, place = watched
    (place / "a").touch()
    began = time.monotonic()
    assert watch.wait(30)
    assert time.monotonic() - began < 10
    watch.close()


def test_a_file_that_comes_during_the_wait_ends_it(watched: tuple[DirectoryWatch, Path]) -> None:
    watch, place = watched
    timer = threading.Timer(0.2, (place / "a").touch)
    timer.start()
    deadline = time.monotonic() + 30
    while not (place / "a").exists() and time.monotonic() < deadline:
        watch.wait(30)
    assert (place / "a").exists()
    assert time.monotonic() < deadline - 15
    timer.join()


def test_a_file_that_replaces_another_ends_a_wait(watched: tuple[DirectoryWatch, Path]) -> None:
    watch, place = watched
    inside = place / "inside"
    inside.mkdir()
    watch.wait(1)
    (inside / "new").touch()
    (inside / "new").replace(place / "order.json")
    began = time.monotonic()
    assert watch.wait(30)
    assert time.monotonic() - began < 10


def test_without_files_a_wait_ends_in_time(watched: tuple[DirectoryWatch, Path]) -> None:
    watch, _ = watched
    began = time.monotonic()
    watch.wait(0.05)
    assert 0.03 < time.monotonic() - began < 5
    watch.wait(-1)


def test_a_directory_that_is_not_there_is_looked_at_from_time_to_time(tmp_path: Path) -> None:
    watch = DirectoryWatch([tmp_path / "none"])
    began = time.monotonic()
    assert watch.wait(30)
    assert time.monotonic() - began < 10
