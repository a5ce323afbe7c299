"""Files and lines of functions and errors, for error messages."""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any


def place_of(function: Callable[..., Any]) -> str:
    """Return the file and the line of a function; empty if unknown."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def line_of(error: BaseException, file: str) -> str:
    """Return the last line of a file in the traceback of an error, or the file alone."""
    steps = walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == file]
    return f"{file}:{lines[-1]}" if lines else file
