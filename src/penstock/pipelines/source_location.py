"""Where in somebody's file something stands, for errors."""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any


def place_of(function: Callable[..., Any]) -> str:
    """Name the file and the line where a function is written, as far as that is known."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def line_of(error: BaseException, file: str) -> str:
    """Name the line of a file that an error came through last, or the file alone."""
    steps = walk_tb(error.__traceback__)
    lines = [line for frame, line in steps if frame.f_code.co_filename == file]
    return f"{file}:{lines[-1]}" if lines else file
