"""Nothing under `core` may see a clock, a socket, a file or Spark: here they raise."""

import builtins
import io
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

SEALED = [
    (time, "time"),
    (time, "monotonic"),
    (time, "perf_counter"),
    (time, "sleep"),
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (socket, "socket"),
]


@pytest.fixture(autouse=True)
def core_is_pure(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seal everything impure, for code of ours only: pytest itself still needs its clock."""
    for module, name in SEALED:
        monkeypatch.setattr(module, name, _sealed(getattr(module, name), name))
    real_import = builtins.__import__

    def guarded_import(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "pyspark":
            raise AssertionError("core is pure: it cannot import pyspark")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded_import)
    yield


def _sealed(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith(("penstock", "tests.core", "test_")):
            raise AssertionError(f"core is pure: pass in what {name} would tell")
        return real(*args, **kwargs)

    return refuse
