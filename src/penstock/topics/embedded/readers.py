"""How far each reader has read. Retention keeps what a registered reader still needs."""

import json
import re
from pathlib import Path

from penstock.errors import DamagedError, InputError
from penstock.files.atomic import full_disk, replace

READERS = "readers"
_NAME = re.compile(r"\w[\w.-]*")


def save_position(directory: Path, reader: str, offset: int) -> None:
    """Register a reader of the topic in this directory, or move it: the next row it wants."""
    path = _path(directory, reader)
    with full_disk(directory.name):
        # without a sync of the folder: after a power failure an older position only keeps more
        replace(path, json.dumps({"version": 1, "offset": offset}).encode() + b"\n")


def positions(directory: Path) -> dict[str, int]:
    """Return the offset of every registered reader."""
    found = {}
    for path in sorted((directory / READERS).glob("[!.]*.json")):
        try:
            found[path.stem] = int(json.loads(path.read_bytes())["offset"])
        except FileNotFoundError:  # forgotten meanwhile
            continue
        except (ValueError, KeyError, TypeError):
            file = f"{READERS}/{path.name}"
            raise DamagedError(directory.name, file, "is no position of a reader") from None
    return found


def forget(directory: Path, reader: str) -> None:
    """Let go of a reader; nothing is kept for it any longer."""
    _path(directory, reader).unlink(missing_ok=True)


def _path(directory: Path, reader: str) -> Path:
    if not _NAME.fullmatch(reader):
        raise InputError("reader", f"must be letters, digits, '.', '-' and '_', got {reader!r}")
    return directory / READERS / f"{reader}.json"
