"""Reads and writes text files named by the user; every failure is an `InputError`."""

import os
import tomllib
from pathlib import Path
from typing import Any

from penstock.errors import InputError

#: No text that people name is longer; a device may have no end.
MAX_TEXT_BYTES = 256 * 2**20


def read_text(path: Path, where: str = "") -> str:
    """Return the content of a file; errors name it by `where`."""
    place = where or str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
        if len(data) > MAX_TEXT_BYTES:
            problem = f"is longer than {MAX_TEXT_BYTES // 2**20} MB"
            raise InputError("", problem, where=place)
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InputError("", "there is no such file", where=place) from None
    except (OSError, ValueError) as error:  # a name that is too long or not Unicode, too
        raise InputError("", f"cannot be read: {explain_os_error(error)}", where=place) from None


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; errors name its file by `where`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError("", "not TOML: nested too deeply", where=where) from None
    except ValueError as error:  # numbers of thousands of digits, too
        raise InputError("", f"not TOML: {error}", where=where) from None


def read_toml(path: Path, where: str = "") -> dict[str, Any]:
    """Return the content of a TOML file."""
    return parse_toml(read_text(path, where), where or str(path))


def is_file(path: Path) -> bool:
    """Whether the file exists; False for an impossible name.

    >>> is_file(Path("x" * 5000))
    False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_directory(path: Path) -> bool:
    """Whether the directory exists; False for an impossible name."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def write_text(path: Path, text: str, option: str) -> None:
    """Write a file atomically; errors name it by `option`."""
    try:
        _write(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        problem = f"{str(path)!r} cannot be written: {explain_os_error(error)}"
        raise InputError(option, problem) from None


def _write(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        path.write_bytes(data)
        return
    # its name must fit where the name of the file fits
    written = path.with_name(f".{os.getpid()}.tmp") if path.name else path
    try:
        written.write_bytes(data)
        written.replace(path)
    finally:
        if written != path:
            written.unlink(missing_ok=True)


def explain_os_error(error: OSError | ValueError) -> str:
    """Return why a file cannot be used, without its name.

    >>> explain_os_error(FileNotFoundError(2, "No such file or directory", "x"))
    'No such file or directory'
    """
    if isinstance(error, UnicodeEncodeError):
        return "its name is not Unicode"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}"
    return getattr(error, "strerror", None) or str(error)
