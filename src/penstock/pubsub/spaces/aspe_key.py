"""The key of an encrypted space: a well-conditioned matrix, and a secret for texts."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from penstock.pubsub.arrays import Doubles

#: Returns so many random bytes.
Entropy = Callable[[int], bytes]

#: The singular values of a key lie between these, so its condition is at most 16.
MIN_SCALE, MAX_SCALE = 0.25, 4.0
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class AspeKey:
    """The matrix A = left diag(scales) right, both factors rotations; only clients have it."""

    left: Doubles = field(repr=False)
    scales: Doubles = field(repr=False)
    right: Doubles = field(repr=False)
    #: Key of the hash of texts.
    secret: bytes = field(repr=False)

    def encrypt_points(self, points: Doubles) -> Doubles:
        """Return A' p for each row p, scaled to length 1."""
        return _normalise(((points @ self.left) * self.scales) @ self.right)

    def encrypt_tests(self, tests: Doubles) -> Doubles:
        """Return A^-1 t for each row t, scaled to length 1."""
        # the inverse by its factors is as well conditioned as the key; `inv` would lose digits
        return _normalise(((tests @ self.left) / self.scales) @ self.right)


def make_aspe_key(size: int, entropy: Entropy = os.urandom) -> AspeKey:
    """Draw a key for vectors of a size."""
    seed = int.from_bytes(entropy(SECRET_BYTES), "little")
    random = np.random.default_rng(seed)
    bounds = math.log(MIN_SCALE), math.log(MAX_SCALE)
    return AspeKey(
        left=_draw_rotation(random, size),
        scales=np.exp(random.uniform(*bounds, size)),
        right=_draw_rotation(random, size),
        secret=entropy(SECRET_BYTES),
    )


def draw_uniform(shape: tuple[int, ...], entropy: Entropy) -> Doubles:
    """Draw numbers between -1 and 1 from random bytes."""
    # bytes of the system instead of a generator: a forked process must not repeat them
    words = np.frombuffer(entropy(8 * math.prod(shape)), np.uint64).reshape(shape)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def _draw_rotation(random: np.random.Generator, size: int) -> Doubles:
    factor, triangle = np.linalg.qr(random.normal(size=(size, size)))
    return np.asarray(factor * np.sign(np.diag(triangle)))


def _normalise(vectors: Doubles) -> Doubles:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
