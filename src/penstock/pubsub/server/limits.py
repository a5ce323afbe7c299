"""Limits of the server: sizes, rates, counts."""

from dataclasses import dataclass

from penstock.core.params import Params, param


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits(Params):
    """What one request or one account may use."""

    max_body_bytes: int = param(1 << 20, "body of a request, except a stream of lines", low=1)
    max_event_bytes: int = param(1 << 18, "one publication", low=1)
    max_lines: int = param(100_000, "publications in one stream of lines, or in a batch", low=1)
    publications_per_s: float = param(10_000.0, "publications/s of an account", low=0.001)
    requests_per_s: float = param(200.0, "requests/s of an account", low=0.001)
    max_subscriptions: int = param(10_000, "live subscriptions of an account", low=0)
    max_streams: int = param(16, "open streams of notifications of an account", low=1)
    max_queue: int = param(10_000, "notifications that wait for a slow subscriber", low=1)
    send_timeout_s: float = param(30.0, "a stream that takes nothing for so long is closed", low=0)


class TokenBucket:
    """Allows a rate with bursts of two seconds; the caller gives the time."""

    def __init__(self, per_s: float, now_s: float) -> None:
        self._per_s, self._burst = per_s, max(1.0, 2 * per_s)
        self._left, self._now_s = self._burst, now_s

    def take(self, count: int, now_s: float) -> float:
        """Take tokens and return 0, or take none and return the seconds until there are enough.

        A count above the burst is allowed when the bucket is full; it is then empty for longer.

        >>> bucket = TokenBucket(10, now_s=0)
        >>> bucket.take(20, 0), bucket.take(1, 0), bucket.take(1, 0.1)
        (0.0, 0.1, 0.0)
        """
        passed = max(0.0, now_s - self._now_s)
        self._left = min(self._burst, self._left + passed * self._per_s)
        self._now_s = max(self._now_s, now_s)
        need = min(float(count), self._burst)
        # a little slack: waiting exactly as long as the answer says must be enough
        if self._left + 1e-9 >= need:
            self._left -= count
            return 0.0
        return (need - self._left) / self._per_s
