"""Imports scikit-learn, which only the extra `demo` installs, when a model is trained."""

from importlib import import_module
from typing import Any

from penstock.errors import missing_package


def import_scikit_learn(module: str) -> Any:
    """Import a module of scikit-learn; `InputError` if the package is missing.

    The import takes a second, so only processes that train a model or load its data pay for it.
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise missing_package("scikit-learn", "this demo pipeline", "demo") from None
