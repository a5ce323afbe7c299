"""Which code runs the kernels: compiled by numba, or NumPy with equal answers."""

from enum import StrEnum
from importlib.util import find_spec


class Backend(StrEnum):
    """What runs a kernel."""

    NUMBA = "numba"
    NUMPY = "numpy"


def default_backend() -> Backend:
    """Return numba if it is installed."""
    return Backend.NUMBA if find_spec("numba") is not None else Backend.NUMPY
