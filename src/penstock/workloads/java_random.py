"""The random numbers of `java.util.Random`, bit for bit.

The evaluation thesis drew its load patterns with it, and its algorithm is part of
Java's specification: a seed always gives the same list, which no Python library
promises. So all patterns draw from it.
"""

import math

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1


class JavaRandom:
    """A 48-bit linear congruential generator; every draw moves it on.

    >>> random = JavaRandom(42)
    >>> random.next_double(), random.next_double()
    (0.7275636800328681, 0.6832234717598454)
    """

    __slots__ = ("_spare", "_state")

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK
        self._spare: float | None = None

    def _next_bits(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> (48 - bits)

    def next_double(self) -> float:
        """Draw from [0, 1), with 53 random bits."""
        high = self._next_bits(26)
        return ((high << 27) + self._next_bits(27)) / (1 << 53)

    def next_gaussian(self) -> float:
        """Draw from the normal distribution with mean 0 and deviation 1 (polar method).

        Equal to Java's up to the last bits of a logarithm, which machines round differently.

        >>> round(JavaRandom(42).next_gaussian(), 12)
        1.141905315473
        """
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        while True:
            x = 2 * self.next_double() - 1
            y = 2 * self.next_double() - 1
            square = x * x + y * y
            if 0 < square < 1:
                break
        stretch = math.sqrt(-2 * math.log(square) / square)
        self._spare = y * stretch
        return x * stretch
