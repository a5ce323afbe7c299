"""Payloads: bytes that clients encrypt with AES-GCM, so that only holders of the key read them."""

import os

from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.pubsub.spaces.aspe_key import Entropy

KEY_BYTES = 32
_NONCE_BYTES = 12
_TAG_BYTES = 16
#: The first byte names the format; it is authenticated with the payload.
_VERSION = b"\x01"
_PURPOSE = "encrypted payloads"


def encrypt_payload(key: bytes, payload: bytes, entropy: Entropy = os.urandom) -> bytes:
    """Return version, nonce and ciphertext with its tag.

    A key must not encrypt more than 2^32 payloads, because nonces are random.
    """
    module = import_optional("cryptography.hazmat.primitives.ciphers.aead", _PURPOSE)
    nonce = entropy(_NONCE_BYTES)
    sealed: bytes = module.AESGCM(key).encrypt(nonce, payload, _VERSION)
    return _VERSION + nonce + sealed


def decrypt_payload(key: bytes, sealed: bytes) -> bytes:
    """Return the payload; `InputError` if the key is another or the bytes were altered."""
    module = import_optional("cryptography.hazmat.primitives.ciphers.aead", _PURPOSE)
    errors = import_optional("cryptography.exceptions", _PURPOSE)
    if sealed[:1] != _VERSION or len(sealed) < 1 + _NONCE_BYTES + _TAG_BYTES:
        raise InputError("payload", "is not an encrypted payload of a known version")
    nonce, inner = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    try:
        payload: bytes = module.AESGCM(key).decrypt(nonce, inner, _VERSION)
    except errors.InvalidTag:
        problem = "cannot be decrypted: it was altered, or the key is another one"
        raise InputError("payload", problem) from None
    return payload
