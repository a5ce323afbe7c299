"""Atomic writes: after a crash a file is complete or absent."""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import FullError

#: Suffix of files being written; a kill may leave some.
TEMPORARY = ".tmp"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def full_disk(topic: str) -> Iterator[None]:
    """Turn the system's error of a full disk, quota or file into a `FullError`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise FullError(topic, error.strerror or "the disk is full") from error
        raise


def write_temporary(path: Path, data: bytes) -> Path:
    """Write and sync a temporary file next to its final path, to be linked or renamed."""
    place = path.with_name(f".{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with place.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        place.unlink(missing_ok=True)
        raise
    return place


def link_new(written: Path, path: Path) -> bool:
    """Link a file to its final name; False if the name exists: only one process succeeds."""
    try:
        path.hardlink_to(written)
    except FileExistsError:
        return False
    return True


def replace(path: Path, data: bytes) -> None:
    """Write or replace a file atomically."""
    write_temporary(path, data).replace(path)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
