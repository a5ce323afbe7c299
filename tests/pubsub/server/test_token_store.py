"""Tokens: what is stored, who they belong to, how they end."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.pubsub.server.credentials import Role, make_token, parse_token
from penstock.pubsub.server.database import FILE, open_database
from penstock.pubsub.server.token_store import TokenStore


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(open_database(tmp_path / "service"))


def test_a_token_belongs_to_its_account_and_role(store: TokenStore) -> None:
    token = str(store.create("alice", Role.SUBSCRIBER))
    account = store.authenticate(token)
    assert account is not None
    assert (account.name, account.can_publish, account.can_subscribe) == ("alice", False, True)
    second = store.authenticate(str(store.create("alice", Role.PUBLISHER)))
    assert second is not None
    assert second.number == account.number
    assert (second.can_publish, second.can_subscribe) == (True, False)


def test_no_file_has_the_secret(store: TokenStore, tmp_path: Path) -> None:
    token = store.create("alice", Role.BOTH)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "service").iterdir())
    assert token.id.encode() in stored and token.hash in stored
    assert token.secret.encode() not in stored
    assert token.secret not in repr(token)


def test_only_the_owner_reads_the_files(store: TokenStore, tmp_path: Path) -> None:
    store.create("alice", Role.BOTH)
    directory = tmp_path / "service"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def test_another_secret_or_id_is_refused(store: TokenStore) -> None:
    token = store.create("alice", Role.BOTH)
    other = make_token()
    for text in (str(other), f"pst_{token.id}_{other.secret}", f"pst_{other.id}_{token.secret}"):
        assert store.authenticate(text) is None
    assert store.authenticate(f"{token}x") is None
    assert store.authenticate(str(token)) is not None


@given(text=st.text(max_size=80))
def test_no_other_text_is_a_token(text: str) -> None:
    token = parse_token(text)
    assert token is None or str(token) == text


def test_revoked_tokens_end_and_a_new_one_finds_the_account(store: TokenStore) -> None:
    first, second = store.create("alice", Role.BOTH), store.create("alice", Role.BOTH)
    account = store.authenticate(str(first))
    bob = store.create("bob", Role.PUBLISHER)
    assert [record.name for record in store.read_all()] == ["alice", "alice", "bob"]
    assert store.revoke("alice") == 2
    assert store.revoke("alice") == 0
    assert store.authenticate(str(first)) is store.authenticate(str(second)) is None
    assert store.authenticate(str(bob)) is not None
    assert store.authenticate(str(store.create("alice", Role.BOTH))) == account


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a" * 65, "ä", "a\nb"])
def test_names_that_are_hard_to_read_are_refused(store: TokenStore, name: str) -> None:
    with pytest.raises(InputError, match="--name"):
        store.create(name, Role.BOTH)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(InputError, match=r"server.sqlite.*cannot be used"):
        open_database(tmp_path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(InputError, match="has format 7, this version reads 1"):
        open_database(tmp_path)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--dir"):
        open_database(tmp_path / "file" / "service")
