"""The seal of conftest.py holds."""

import builtins
import importlib
import time

import pytest


def test_a_clock_cannot_be_read() -> None:
    with pytest.raises(AssertionError, match="core is pure"):
        time.time()


def test_a_file_cannot_be_opened() -> None:
    with pytest.raises(AssertionError, match="core is pure"):
        builtins.open("README.md")  # noqa: PTH123, SIM115


def test_spark_cannot_be_imported() -> None:
    with pytest.raises(AssertionError, match="pyspark"):
        exec("import pyspark")
    assert importlib.util.find_spec("penstock.core") is not None
