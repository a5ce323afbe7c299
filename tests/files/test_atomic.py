"""Files are complete or absent, also when the disk is full."""

import errno
import os
from pathlib import Path

import pytest

from penstock.errors import FullError
from penstock.files.atomic import full_disk, link_new, replace, sync_directory, write_temporary


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    replace(path, b"old")
    replace(path, b"new")
    sync_directory(tmp_path)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_first_link_to_a_name_succeeds(tmp_path: Path) -> None:
    first, second = write_temporary(tmp_path / "a", b"1"), write_temporary(tmp_path / "a", b"2")
    assert [link_new(first, tmp_path / "a"), link_new(second, tmp_path / "a")] == [True, False]
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FullError, match="No space left"), full_disk("orders"):
        replace(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == []


def test_another_error_is_not_a_full_disk() -> None:
    with pytest.raises(PermissionError), full_disk("orders"):
        raise PermissionError(errno.EACCES, "Permission denied")
