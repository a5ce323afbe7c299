"""Penstock: elastic stream processing on Spark."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.pipelines.pipeline import Pipeline

__all__ = ["Pipeline", "__version__"]

__version__ = "0.1.0"

# quiet unless the program that uses Penstock configures logging
logging.getLogger("penstock").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load what pipeline files import when they ask for it: the commands must start at once."""
    if name == "Pipeline":
        return import_module("penstock.pipelines.pipeline").Pipeline
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
