"""An engine that Penstock only watches: measures come from Prometheus, changes go to a webhook."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.engines.port import Capabilities, Plan, Status
from penstock.errors import InputError, RescaleError

#: Seconds that a webhook may take.
WEBHOOK_S = 10.0
Send = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Sends requests to change replicas as JSON."""

    url: str
    #: Sent as a bearer token, if there is one.
    token: str = ""

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InputError("--webhook", f"must be an http address, got {self.url!r}")

    def send(self, message: Mapping[str, Any]) -> None:
        """Post a message; `RescaleError` if the receiver does not accept it."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(
            self.url, json.dumps(message).encode(), headers, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=WEBHOOK_S):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            raise RescaleError(f"the webhook refused it: {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise RescaleError(f"the webhook does not answer: {reason}") from None


class WatchedEngine:
    """A pipeline of another system: observed by a function, changed by sending requests."""

    capabilities = Capabilities()

    def __init__(
        self,
        observe: Callable[[float], Snapshot],
        clock: Callable[[], float],
        send: Send | None = None,
        sleep: Callable[[float], None] = time.sleep,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._observe, self._clock, self._send, self._sleep = observe, clock, send, sleep
        self._stop = stop
        self._snapshot: Snapshot | None = None
        self._requested: dict[str, int] = {}
        self._replica_s: dict[str, float] = {}
        self._offered = self._processed = 0.0

    def advance(self, seconds: float) -> None:
        """Wait; a stop ends it early."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._stop():
            self._sleep(min(0.5, left))

    def observe(self) -> Snapshot:
        """Return the present measurements."""
        snapshot = self._observe(round(self._clock(), 3))
        self._integrate(snapshot)
        self._snapshot = snapshot
        return snapshot

    def _integrate(self, snapshot: Snapshot) -> None:
        """Add up replicas and records since the last snapshot: Prometheus has rates only."""
        before = self._snapshot
        seconds = snapshot.at - before.at if before is not None else 0.0
        for name, operator in snapshot.operators.items():
            spent = self._replica_s.get(name, 0.0)
            self._replica_s[name] = spent + operator.parallelism * seconds
            if operator.is_source:
                self._processed += (operator.input_rate or 0.0) * seconds
                self._offered += snapshot.offered.get(name, operator.input_rate or 0.0) * seconds
            if self._requested.get(name) == operator.parallelism:
                del self._requested[name]

    def apply(self, plan: Plan) -> None:
        """Send the replicas that are requested; `RescaleError` if nobody accepts it."""
        if self._send is None:
            raise RescaleError("there is no webhook")
        self._send({"version": 1, "at": self._clock(), "replicas": dict(plan.replicas)})
        self._requested.update(plan.replicas)

    def status(self) -> Status:
        """Return replicas and sums."""
        operators = self._snapshot.operators if self._snapshot is not None else {}
        running = {name: operator.parallelism for name, operator in operators.items()}
        queues = [operator.queue or 0.0 for operator in operators.values() if operator.is_source]
        return Status(
            at=self._clock(),
            requested=FrozenDict({**running, **self._requested}),
            running=FrozenDict(running),
            replica_s=FrozenDict(self._replica_s),
            offered_records=round(self._offered),
            processed_records=round(self._processed),
            backlog_records=round(sum(queues)),
        )
