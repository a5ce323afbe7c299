"""Payloads: AES-GCM, its format, and refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.pubsub.payload import KEY_BYTES, decrypt_payload, encrypt_payload

KEY = bytes(range(KEY_BYTES))


@given(payload=st.binary(max_size=200))
def test_a_payload_comes_back(payload: bytes) -> None:
    assert decrypt_payload(KEY, encrypt_payload(KEY, payload)) == payload


def test_the_format_is_version_nonce_ciphertext_tag() -> None:
    sealed = encrypt_payload(KEY, b"tick", entropy=lambda count: b"n" * count)
    assert sealed[:13] == b"\x01" + b"n" * 12
    assert len(sealed) == 1 + 12 + 4 + 16


def test_two_encryptions_differ() -> None:
    assert encrypt_payload(KEY, b"tick") != encrypt_payload(KEY, b"tick")


@given(place=st.integers(0, 32), bit=st.integers(0, 7))
def test_one_altered_bit_is_refused(place: int, bit: int) -> None:
    sealed = bytearray(encrypt_payload(KEY, b"tick"))
    sealed[place] ^= 1 << bit
    with pytest.raises(InputError, match="payload"):
        decrypt_payload(KEY, bytes(sealed))


def test_another_key_and_a_short_payload_are_refused() -> None:
    sealed = encrypt_payload(KEY, b"tick")
    with pytest.raises(InputError, match="altered, or the key is another one"):
        decrypt_payload(KEY[::-1], sealed)
    for end in range(29):
        with pytest.raises(InputError, match="not an encrypted payload"):
            decrypt_payload(KEY, sealed[:end])
