"""Settings of the tests of topics."""

import os
from pathlib import Path

import pytest
from tests.topics.factories import SCHEMA

from penstock.topics.embedded.topic import Topic


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test pulls the plug, so none has to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """An empty topic."""
    return Topic.create(tmp_path / "images", SCHEMA)
