"""Tokens: random secrets that the store keeps as hashes, and what their holders may do."""

import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

_PREFIX = "pst"
_ID_BYTES, _SECRET_BYTES = 8, 32
#: Compared with when no token has the id, so that both answers take the same time.
_NO_HASH = bytes(32)


class Role(StrEnum):
    """What the holder of a token may do."""

    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The holder of a valid token; subscriptions belong to accounts, not to tokens."""

    number: int
    name: str
    role: Role

    @property
    def can_publish(self) -> bool:
        """Whether the token allows publishing."""
        return self.role is not Role.SUBSCRIBER

    @property
    def can_subscribe(self) -> bool:
        """Whether the token allows subscriptions and notifications."""
        return self.role is not Role.PUBLISHER


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as its holder has it: a public id, and a secret that is stored nowhere."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"{_PREFIX}_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"AccessToken({self.id!r}, ...)"

    @property
    def hash(self) -> bytes:
        """The SHA-256 of the secret.

        A slow hash with a salt protects short passwords against guessing. A secret of 256 random
        bits cannot be guessed, so one round is enough, and every request can afford it.
        """
        return sha256(self.secret.encode()).digest()

    def is_proven_by(self, stored: bytes | None) -> bool:
        """Whether the secret has this hash; takes as long for a token that nobody has."""
        return hmac.compare_digest(self.hash, stored or _NO_HASH) and stored is not None


def make_token() -> AccessToken:
    """Draw a new token."""
    return AccessToken(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))


def parse_token(text: str) -> AccessToken | None:
    """Read a token, None if it has another form.

    >>> parse_token("pst_00ff_se_cret")
    AccessToken('00ff', ...)
    >>> parse_token("Basic x") is None
    True
    """
    prefix, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    if prefix != _PREFIX or not number or not secret or not text.isascii():
        return None
    return AccessToken(number, secret)
