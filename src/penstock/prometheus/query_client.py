"""Asks a Prometheus server for instant vectors over its HTTP interface."""

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.errors import InputError, NotReadyError

#: Seconds that one query may take, and bytes that its answer may have.
TIMEOUT_S, MAX_ANSWER_BYTES = 10.0, 16_000_000


class VectorSample(NamedTuple):
    """One series of an instant vector."""

    labels: Mapping[str, str]
    value: float


class PrometheusClient:
    """Queries one server."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError("--prometheus", f"must be an http address, got {url!r}")
        self.url, self._timeout_s = url.rstrip("/"), timeout_s

    def query(self, expression: str, at: float | None = None) -> list[VectorSample]:
        """Return the samples of an expression at a time.

        `InputError` for an expression that the server cannot parse, `NotReadyError` if there is no
        answer.
        """
        fields = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode(fields)}"
        try:
            with urllib.request.urlopen(address, timeout=self._timeout_s) as stream:
                data = stream.read(MAX_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            problem = _problem(error.read(10_000))
            if error.code in (400, 422):
                raise InputError(expression, f"Prometheus refuses the query: {problem}") from None
            raise NotReadyError(f"Prometheus: error {error.code}: {problem}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NotReadyError(f"Prometheus at {self.url} does not answer: {reason}") from None
        if len(data) > MAX_ANSWER_BYTES:
            raise NotReadyError("the answer of Prometheus is too large")
        return _read_vector(data, expression)


def _read_vector(data: bytes, expression: str) -> list[VectorSample]:
    try:
        result = json.loads(data)["data"]
        if result["resultType"] != "vector":
            problem = f"gives a {result['resultType']}, not an instant vector"
            raise InputError(expression, problem)
        return [VectorSample(each["metric"], float(each["value"][1])) for each in result["result"]]
    except (KeyError, TypeError, ValueError, IndexError):
        raise NotReadyError("the answer of Prometheus cannot be read") from None


def _problem(body: bytes) -> str:
    try:
        answer: Any = json.loads(body)
        return str(answer["error"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:200]


def by_label(samples: list[VectorSample], label: str) -> dict[str, float]:
    """Return the finite values by one label; series without it are left out.

    >>> by_label([VectorSample({"op": "a"}, 2.0), VectorSample({}, 3.0)], "op")
    {'a': 2.0}
    """
    return {
        sample.labels[label]: sample.value
        for sample in samples
        if label in sample.labels and math.isfinite(sample.value)
    }
