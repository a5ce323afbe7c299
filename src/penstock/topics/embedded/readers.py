"""The positions of registered readers; retention keeps the rows they have not read."""

import json
import re
from pathlib import Path

from penstock.errors import DamagedError, InputError
from penstock.files.atomic import full_disk, replace

READERS = "readers"
_NAME = re.compile(r"\w[\w.-]*")


def save_position(directory: Path, reader: str, offset: int) -> None:
    """Register a reader of a topic, or save its position: the next row that it reads."""
    path = _path(directory, reader)
    with full_disk(directory.name):
        # no directory sync: an older position after a power failure only keeps more rows
        replace(path, json.dumps({"version": 1, "offset": offset}).encode() + b"\n")


def positions(directory: Path) -> dict[str, int]:
    """Return the offset of every registered reader."""
    offsets = {}
    for path in sorted((directory / READERS).glob("[!.]*.json")):
        try:
            offsets[path.stem] = int(json.loads(path.read_bytes())["offset"])
        except FileNotFoundError:  # removed meanwhile
            continue
        except (ValueError, KeyError, TypeError):
            file = f"{READERS}/{path.name}"
            raise DamagedError(directory.name, file, "is no position of a reader") from None
    return offsets


def forget(directory: Path, reader: str) -> None:
    """Unregister a reader; rows are no longer kept for it."""
    _path(directory, reader).unlink(missing_ok=True)


def _path(directory: Path, reader: str) -> Path:
    if not _NAME.fullmatch(reader):
        raise InputError("reader", f"must be letters, digits, '.', '-' and '_', got {reader!r}")
    return directory / READERS / f"{reader}.json"
