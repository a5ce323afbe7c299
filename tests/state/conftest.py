"""Settings of the tests of state."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test pulls the plug, so none has to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
