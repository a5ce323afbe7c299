"""What a process run is asked for: pipeline, load, delays, thresholds."""

from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.core.instance_decision import DecentralizedParams
from penstock.decentralized.processes.functions import MAX_OPERATORS, build_pipeline
from penstock.decentralized.processes.load import LOADS
from penstock.errors import InputError, nearest

#: The operators at both ends of a pipeline; they have one node each and never scale.
SOURCE, SINK = "source", "sink"
#: Instances at the lowest and the highest load, as multiples of the instances at the start.
_LOW, _HIGH = 0.5, 4.0
#: A run waits for its actions at most this many times the seconds that were asked for.
MAX_EXTENSION = 5
MAX_INSTANCES, MAX_PORT, MAX_DELAY_MS = 20, 60_000, 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRunSpec:
    """Everything that decides how a process run goes, but for the scheduling of the machine."""

    operators: int = 3
    instances: int = 2
    seconds: float = 30.0
    seed: int = 1
    #: Shortest and longest delay of a message in a channel.
    delay_ms: tuple[float, float] = (0.0, 20.0)
    load: str = "wave"
    min_actions: int = 50
    #: Records per second that one instance can process; its service time is emulated by waiting.
    capacity: float = 25.0
    #: Seconds between two decisions of one instance.
    interval_s: float = 1.0
    #: Launcher and nodes listen on this port and the following ones; 0: any free ports.
    port: int = 0
    params: DecentralizedParams = field(default_factory=DecentralizedParams)

    def check(self) -> None:
        """Refuse what no run can do, with the name of the option."""
        _check_range("--operators", self.operators, 1, MAX_OPERATORS)
        _check_range("--instances", self.instances, 1, MAX_INSTANCES)
        _check_range("--seconds", self.seconds, 1, 86_400)
        _check_range("--min-actions", self.min_actions, 0, 10**6)
        _check_range("--capacity", self.capacity, 1, 1000)
        _check_range("--interval", self.interval_s, 0.1, 3600)
        low, high = self.delay_ms
        _check_range("--delay-ms", low, 0, MAX_DELAY_MS)
        _check_range("--delay-ms", high, low, MAX_DELAY_MS)
        if self.port:
            _check_range("--port", self.port, 1024, MAX_PORT)
        if self.load not in LOADS:
            raise InputError("--load", f"unknown {self.load!r}", nearest(self.load, LOADS))

    @property
    def names(self) -> tuple[str, ...]:
        """The operators from source to sink."""
        return (SOURCE, *build_pipeline(self.operators), SINK)

    @property
    def rates(self) -> tuple[float, float]:
        """The lowest and the highest load in records per second."""
        full = self.instances * self.params.r * self.capacity
        return _LOW * full, _HIGH * full

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON."""
        params = {name: getattr(self.params, name) for name in ("r", "up", "down")}
        return {**asdict(self), "delay_ms": list(self.delay_ms), "params": params}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ProcessRunSpec":
        """Read what `to_json` returned."""
        low, high = data["delay_ms"]
        params = DecentralizedParams(**data["params"])
        return cls(**{**data, "delay_ms": (low, high), "params": params})


def _check_range(option: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(option, f"must be between {low:g} and {high:g}, got {value:g}")
