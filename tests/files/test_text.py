"""Text files that people name."""

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.files import text as text_files
from penstock.files.text import is_directory, is_file, parse_toml, read_text, write_text


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "a = ", "a = 1\na = 2"])
def test_what_is_no_toml_is_one_error(text: str) -> None:
    with pytest.raises(InputError, match=r"x\.toml: not TOML"):
        parse_toml(text, "x.toml")


@pytest.mark.parametrize("name", ["x" * 300, "\ud800", "none/at/all", "a\0b"])
def test_names_that_no_file_has(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert not is_file(path) and not is_directory(path)
    with pytest.raises(InputError):
        read_text(path)
    with pytest.raises(InputError, match=r"--out: .* cannot be written"):
        write_text(path, "text", "--out")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page"
    write_text(path, "one", "--out")
    write_text(path, "two \ud800", "--out")
    assert path.read_text() == "two \\ud800"
    with pytest.raises(InputError, match="Is a directory"):
        write_text(tmp_path, "text", "--out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["page"]


def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    # by links: code that replaces what it is given, run by root, must not replace a device
    zero, full = tmp_path / "zero", tmp_path / "full"
    zero.symlink_to("/dev/zero")
    full.symlink_to("/dev/full")
    write_text(zero, "text", "--out")
    assert zero.is_symlink()
    with pytest.raises(InputError, match="No space left"):
        write_text(full, "text", "--out")
    assert full.is_symlink()


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_TEXT_BYTES", 2**20)
    with pytest.raises(InputError, match="/dev/zero: is longer than 1 MB"):
        read_text(Path("/dev/zero"))
