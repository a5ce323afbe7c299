"""Imports packages that only an extra of Penstock installs, or says which extra is missing."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from penstock.errors import InputError

#: Optional packages by the name that Python imports: the name for pip, and the extras.
OPTIONAL = {
    "confluent_kafka": ("confluent-kafka", "kafka"),
    "cryptography": ("cryptography", "pubsub"),
    "duckdb": ("duckdb", "nexmark"),
    "httpx": ("httpx", "pubsub"),
    "jinja2": ("jinja2", "dashboard"),
    "matplotlib": ("matplotlib", "plots"),
    "numba": ("numba", "pubsub"),
    "prometheus_client": ("prometheus-client", "dashboard"),
    "rich": ("rich", "dashboard"),
    "sklearn": ("scikit-learn", "demo"),
    "sse_starlette": ("sse-starlette", "dashboard", "pubsub"),
    "starlette": ("starlette", "dashboard", "pubsub"),
    "uvicorn": ("uvicorn", "dashboard", "pubsub"),
}


def import_optional(module: str, purpose: str, extra: str = "") -> Any:
    """Import a module of an optional package; `InputError` if the package is missing.

    `extra` is the extra of the purpose, if several have the package; by default the first one.
    Such imports take up to a second, so they stand where the module is used.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there, but something that it needs is not
        raise missing_package(module, purpose, extra) from None


def check_optional(module: str, purpose: str, extra: str = "") -> None:
    """Raise `InputError` if an optional package is missing, without the time of an import."""
    if find_spec(module) is None:
        raise missing_package(module, purpose, extra)


def missing_package(module: str, purpose: str, extra: str = "") -> InputError:
    """Return the error for a missing package.

    >>> print(missing_package("sklearn.tree", "pipeline dns"))
    pipeline dns: needs scikit-learn: pip install '.[demo]' in a clone, or 'WHEEL[demo]'
    """
    package, *extras = OPTIONAL[module.partition(".")[0]]
    assert not extra or extra in extras, (module, extra)
    return InputError(purpose, f"needs {package}: {install_command(extra or extras[0])}")


def install_command(extra: str) -> str:
    """Return how to install an extra; no package index has Penstock."""
    return f"pip install '.[{extra}]' in a clone, or 'WHEEL[{extra}]'"
