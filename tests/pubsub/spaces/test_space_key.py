"""Key files: written once, for their owner only, checked when they are read."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.pubsub.spaces.aspe import AspeEncoder
from penstock.pubsub.spaces.plain import PlainEncoder
from penstock.pubsub.spaces.space import Space, parse_space, read_space
from penstock.pubsub.spaces.space_key import (
    SpaceKey,
    make_space_key,
    read_space_key,
    write_space_key,
)


def make_space(scheme: str = "aspe") -> Space:
    attributes = {"price": {"low": 0, "high": 5, "step": 0.5}, "symbol": {"text": True}}
    return parse_space({"format": 1, "scheme": scheme, "attributes": attributes})


@pytest.fixture
def key() -> SpaceKey:
    return make_space_key(make_space(), np.random.default_rng(0).bytes)


def test_a_key_file_is_for_its_owner_only_and_reads_back(key: SpaceKey, tmp_path: Path) -> None:
    path = tmp_path / "space.key"
    write_space_key(path, key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    back = read_space_key(path)
    assert (back.space, back.payload_key) == (key.space, key.payload_key)
    assert back.aspe is not None and key.aspe is not None
    assert back.aspe.secret == key.aspe.secret
    for name in ("left", "scales", "right"):
        assert (getattr(back.aspe, name) == getattr(key.aspe, name)).all()
    assert isinstance(back.make_encoder(), AspeEncoder)


def test_a_plain_space_has_a_payload_key_only(tmp_path: Path) -> None:
    write_space_key(tmp_path / "key", make_space_key(make_space("plain")))
    back = read_space_key(tmp_path / "key")
    assert back.aspe is None
    assert isinstance(back.make_encoder(), PlainEncoder)


def test_a_key_file_is_never_replaced(key: SpaceKey, tmp_path: Path) -> None:
    path = tmp_path / "space.key"
    path.write_text("something")
    with pytest.raises(InputError, match="exists already"):
        write_space_key(path, key)
    assert path.read_text() == "something"
    with pytest.raises(InputError, match="cannot be written"):
        write_space_key(tmp_path / "missing" / "space.key", key)


def test_every_key_is_another_one() -> None:
    first, second = make_space_key(make_space()), make_space_key(make_space())
    assert first.payload_key != second.payload_key
    assert first.aspe is not None and second.aspe is not None
    assert np.abs(first.aspe.left - second.aspe.left).max() > 0


def test_no_secret_is_printed(key: SpaceKey) -> None:
    assert key.aspe is not None
    for text in (repr(key), repr(key.aspe), repr(key.make_encoder())):
        assert "array" not in text
        assert repr(key.payload_key) not in text
        assert repr(key.aspe.secret) not in text


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 2}, "format: must be 1, got 2"),
        ({"payload_key": "AAAA"}, "payload_key: must be 32 bytes"),
        ({"payload_key": "ä"}, "payload_key: must be 32 bytes"),
        ({"aspe": None}, "aspe: is missing"),
        ({"aspe": {"scales": "AAAA"}}, "aspe.scales: must be 48 bytes"),
        ({"space": 3}, "space: must be the declaration"),
        ({"space": {"format": 1, "scheme": "rsa"}}, "space.scheme: must be plain or aspe"),
    ],
)
def test_a_damaged_key_file_is_refused(
    key: SpaceKey, tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    write_space_key(tmp_path / "key", key)
    fields = json.loads((tmp_path / "key").read_text()) | change
    (tmp_path / "key").write_text(json.dumps(fields))
    with pytest.raises(InputError) as caught:
        read_space_key(tmp_path / "key")
    assert problem in str(caught.value)
    assert str(tmp_path / "key") in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "no", "[" * 100_000])
def test_other_files_are_no_key_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    with pytest.raises(InputError, match="is no key file"):
        read_space_key(tmp_path / "key")


@pytest.mark.parametrize("name", ["left", "right"])
def test_a_matrix_that_is_no_rotation_is_refused(key: SpaceKey, tmp_path: Path, name: str) -> None:
    write_space_key(tmp_path / "key", key)
    fields = json.loads((tmp_path / "key").read_text())
    fields["aspe"][name] = "AAAA" + fields["aspe"][name][4:-8] + "AAAAAAA="
    (tmp_path / "key").write_text(json.dumps(fields))
    with pytest.raises(InputError, match=f"aspe.{name}"):
        read_space_key(tmp_path / "key")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("format = 1\nscheme = 'aspe'\n[attributes.a]\n", "attributes.a: an encrypted space"),
        ("format = 1\nscheme = 'aspe'\n[attributes.a]\nlow = 0\nhigh = 1\n", "a.step: is missing"),
        ("format = 1\nscheme = 'aspe'\n[attributes.a]\ntext = false\n", "attributes.a"),
        ("format = 1\nscheme = 'plain'\n", "attributes: must be a table"),
        ("format = 1\nscheme = 'plain'\ncolor = 1\n", "color: is not known"),
        ("scheme = 'plain'\n", "format: must be 1"),
        ("format = [", "not TOML"),
    ],
)
def test_a_wrong_declaration_names_the_file_and_the_field(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_space(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
